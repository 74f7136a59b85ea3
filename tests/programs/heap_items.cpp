// Items of two kinds, made with new: one of the two files of a program.
struct Item {
  int numbers[8];
};

__attribute__((noinline)) static Item *filled(int with) {
  Item *item = new Item;
  for (int &number : item->numbers)
    number = with;
  return item;
}

Item *kept_item(int with) { return filled(with); }

__attribute__((noinline)) Item *short_lived_item(int with) { return filled(-with); }

int sum(const Item *item) {
  int all = 0;
  for (int number : item->numbers)
    all += number;
  return all;
}

void release(Item *item) { delete item; }
