// A library that a simulated process loads.
#define APART __attribute__((noinline))

APART int halve(int number) {
    return number / 2;
}

APART int steps_to_one(int number) {
    int steps = 0;
    while (number > 1 && steps < 1000) {
        number = number % 2 ? number * 3 + 1 : halve(number);
        steps++;
    }
    return steps;
}

int longest(int below) {
    int best = 0;
    for (int number = 1; number < below; number++) {
        int steps = steps_to_one(number);
        if (steps > best)
            best = steps;
    }
    return best;
}
