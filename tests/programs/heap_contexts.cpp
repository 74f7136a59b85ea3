// Allocation contexts of several shapes: inlined, recursive, through a pointer, long and short lives.
#include <cstdlib>
#include <cstring>
#include <unistd.h>
#include <vector>

struct Node {
  Node *next;
  char text[40];
};

static inline __attribute__((always_inline)) Node *make(Node *next) {
  Node *node = new Node;
  node->next = next;
  std::memset(node->text, 7, sizeof node->text);
  return node;
}

__attribute__((noinline)) static Node *chain(int length) {
  Node *head = nullptr;
  for (int i = 0; i < length; ++i)
    head = make(head);
  return head;
}

__attribute__((noinline)) static void release(Node *head) {
  while (head) {
    Node *next = head->next;
    delete head;
    head = next;
  }
}

__attribute__((noinline)) char *buffer(int depth) {
  if (depth > 0)
    return buffer(depth - 1);
  return static_cast<char *>(std::malloc(1000));
}

using Maker = char *(*)(int);
__attribute__((noinline)) char *through(Maker maker, int depth) { return maker(depth); }

int main(int count, char **) {
  Node *kept = chain(10);
  for (int round = 0; round < 5; ++round) {
    Node *head = chain(round + count);
    release(head);
  }
  char *one = through(buffer, 0);
  char *two = through(buffer, 3);
  one[0] = 1;
  for (int i = 0; i < 1000; ++i)
    two[i] = static_cast<char>(i);
  std::vector<int> numbers;
  for (int i = 0; i < 100; ++i)
    numbers.push_back(i * two[i]);
  usleep(20000);
  void *zeroed = calloc(10, 10);
  zeroed = realloc(zeroed, 500);
  std::free(zeroed);
  std::free(one);
  std::free(two);
  release(kept);
  return numbers[3] == -1;
}
