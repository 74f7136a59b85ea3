// A shelf of items: the other file, which calls into heap_items.cpp and has allocations of its own.
#include <unistd.h>

struct Item;
Item *kept_item(int with);
Item *short_lived_item(int with);
int sum(const Item *item);
void release(Item *item);

struct Shelf {
  Item *items[20];
};

__attribute__((noinline)) static Shelf *furnished() {
  Shelf *shelf = new Shelf;
  int with = 0;
  for (Item *&item : shelf->items)
    item = kept_item(++with);
  return shelf;
}

int main() {
  Shelf *shelf = furnished();
  int all = 0;
  for (int round = 0; round < 100; ++round) {
    Item *item = short_lived_item(round);
    all += sum(item);
    release(item);
  }
  usleep(20000);
  for (Item *item : shelf->items) {
    all += sum(item);
    release(item);
  }
  delete shelf;
  return all == 1;
}
