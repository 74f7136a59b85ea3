// A server in small: threads that allocate in containers, in the standard library, and by calls of C.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

struct Item {
  std::string name;
  std::vector<int> data;
};

__attribute__((noinline)) Item *make(int number) {
  auto *item = new Item;
  item->name = "item number " + std::to_string(number) + " has a name";
  item->data.resize(number % 100 + 1);
  return item;
}

__attribute__((noinline)) void serve(int id) {
  std::map<int, std::unique_ptr<Item>> items;
  for (int number = 0; number < 500; number++)
    items[number] = std::unique_ptr<Item>(make(number * id));
  std::string text;
  for (int number = 0; number < 20; number++)
    text += "a line of a response\n";
  char *copy = strdup(text.c_str());
  if (id > 100)
    puts(copy);
  free(copy);
}

int main() {
  std::vector<std::thread> threads;
  for (int id = 0; id < 4; id++)
    threads.emplace_back(serve, id);
  for (auto &thread : threads)
    thread.join();
  puts("ok");
}
