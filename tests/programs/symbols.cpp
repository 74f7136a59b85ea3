// Functions whose symbols have many forms, for the demangler.
#include <algorithm>
#include <array>
#include <bitset>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace shop {
enum class Colour : unsigned char { red, green };
struct Item {
    struct Label { int width; };
    Item();
    Item(const Item &);
    explicit Item(int);
    template <class T> Item(T, T);
    ~Item();
    operator bool() const;
    explicit operator const char *() const volatile;
    operator std::vector<int>() const;
    bool operator==(const Item &) const &;
    Item &operator=(Item &&) &&;
    Item operator+(const Item &) const;
    int &operator[](unsigned long);
    Item *operator->();
    Item &operator++();
    void operator()(int, ...);
    static void *operator new(unsigned long);
    Label label(Label &, const Label *, Label &&, const Label &);
    volatile int *places(const volatile char *, int (*)(Item *), int Item::*, int (&)[3]);
};
Item::Item() {}
Item::Item(const Item &) {}
Item::Item(int) {}
template <class T> Item::Item(T, T) {}
Item::~Item() {}
Item::operator bool() const { return true; }
Item::operator const char *() const volatile { return ""; }
Item::operator std::vector<int>() const { return {}; }
bool Item::operator==(const Item &) const & { return true; }
Item &Item::operator=(Item &&) && { return *this; }
Item Item::operator+(const Item &) const { return {}; }
int &Item::operator[](unsigned long) { static int place; return place; }
Item *Item::operator->() { return this; }
Item &Item::operator++() { return *this; }
void Item::operator()(int, ...) {}
void *Item::operator new(unsigned long size) { return ::operator new(size); }
Item::Label Item::label(Label &label, const Label *, Label &&, const Label &) { return label; }
volatile int *Item::places(const volatile char *, int (*)(Item *), int Item::*, int (&)[3]) { return nullptr; }

template <class T, unsigned N, Colour C, bool B, int I, long L, char K> struct Shelf {
    T items[N];
    template <class U> U take(U, T, const T &, U *);
    static int count;
};
template <class T, unsigned N, Colour C, bool B, int I, long L, char K>
template <class U> U Shelf<T, N, C, B, I, L, K>::take(U one, T, const T &, U *) { return one; }
template <class T> T pick(T one, const T &, T *) { return one; }
template <class T, class... Rest> T first(T one, Rest...) { return one; }
template <class T> std::function<T(const T &, T)> make(std::map<T, std::vector<T>>) { return {}; }
template <unsigned long N> std::bitset<N> bits(std::bitset<N> all) { return all; }
Item each(std::function<Item(const Item &)> f, std::function<void()>, std::function<Item *(Item::Label)>) { return f(Item(1)); }
std::ostream &operator<<(std::ostream &out, const Item &) { return out; }
bool operator<(const Item &, const Item &) { return false; }
namespace { [[gnu::used]] Item hidden(std::nullptr_t, Item item) { return item; } }
inline namespace v2 { [[gnu::used]] void newer(std::string, std::string::const_iterator) {} }
[[gnu::abi_tag("tagged")]] void tagged() {}
void letters(unsigned char, signed char, short, unsigned short, unsigned, long, unsigned long, long long,
             unsigned long long, float, double, long double, wchar_t, char16_t, char32_t, __int128, bool) {}
}

int main() {
    using namespace shop;
    Shelf<Item, 3, Colour::green, true, -5, 7, 'c'> shelf;
    Shelf<std::vector<Item::Label>, 4, Colour::red, false, 0, -1, 'd'> other;
    shelf.take<long>(1L, Item(), Item(), nullptr);
    other.take<const char *>("", {}, {}, nullptr);
    pick(Item::Label{}, Item::Label{}, (Item::Label *)nullptr);
    pick<const char *>("", "", nullptr);
    pick<void (*)(int)>(nullptr, nullptr, nullptr);
    first(1, 2.0, Item());
    make<Item>({});
    make<std::string>({});
    bits(std::bitset<9>());
    Item pair(std::vector<int>::iterator{}, std::vector<int>::iterator{});
    each({}, {}, {});
    std::unordered_map<std::string, std::unique_ptr<Item>> map;
    map["a"] = std::make_unique<Item>(1);
    std::vector<std::string> words{"b", "a"};
    std::sort(words.begin(), words.end(), [](auto &a, auto &b) { return a < b; });
    std::variant<int, std::string> variant{words[0]};
    std::visit([](auto &&) {}, variant);
    std::ostringstream out;
    out << Item() << std::regex_replace(words[0], std::regex("a+"), "b");
    return (int)out.str().size() + std::accumulate(words.begin(), words.end(), std::string()).size();
}
