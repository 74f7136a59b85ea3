// A program with every kind of branch, for simulated recordings: loops, a switch, recursion, calls through pointers, tail
// calls, functions of a library, inlined functions.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline))

static unsigned state = 12345;

static inline unsigned draw(unsigned bound) {
    state = state * 1103515245u + 12345u;
    return (state >> 16) % bound;
}

APART int add(int a, int b) {
    return a + b;
}

APART int multiply(int a, int b) {
    int product = 0;
    for (int i = 0; i < b; i++)
        product = add(product, a);
    return product;
}

APART int power(int a, int b) {
    if (b <= 0)
        return 1;
    return multiply(a, power(a, b - 1) & 15);
}

APART int choose(int kind, int value) {
    switch (kind) {
    case 0: return value * 3 + 1;
    case 1: return add(value, 7);
    case 2: return multiply(value, 3);
    case 3: return value ^ 0x55;
    case 4: return power(value, 3);
    case 5: return value - draw(9);
    case 6: return (int)strlen("seven") + value;
    default: return value / 2;
    }
}

typedef int (*Step)(int, int);

APART int apply(Step step, int value) {
    return step(value, 3) + 1;
}

// A tail call.
APART int forward(int value, int kind) {
    if (kind & 1)
        value++;
    return choose(kind & 7, value);
}

static int compare(const void *one, const void *two) {
    return *(const int *)one - *(const int *)two;
}

APART void sort(int *numbers, int count) {
    for (int i = 1; i < count; i++) {
        int number = numbers[i], at = i;
        while (at > 0 && compare(&numbers[at - 1], &number) > 0) {
            numbers[at] = numbers[at - 1];
            at--;
        }
        numbers[at] = number;
    }
}

int main(int argc, char **argv) {
    Step steps[] = {add, multiply, power, forward};
    int numbers[64];
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    long sum = 0;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 64; i++) {
            int value = apply(steps[draw(4)], (int)draw(40));
            numbers[i] = choose((int)draw(9), value);
        }
        sort(numbers, 64);
        sum += numbers[round % 64];
    }
    printf("%ld\n", sum);
    return 0;
}
