//! A priority queue that returns equal elements in the same order as the C++ library that LLVM's tools use on Linux
//! (libstdc++). Functions with equal counts and sizes are common. Their order decides which of them are inlined before
//! a limit is reached.
use std::cmp::Ordering;

#[derive(Debug)]
pub struct Queue<T> {
    heap: Vec<T>,
    order: fn(&T, &T) -> Ordering,
}

impl<T> Queue<T> {
    /// Equal elements are returned in the order of libstdc++, which need not be that of adding.
    pub fn new(order: fn(&T, &T) -> Ordering) -> Self {
        Queue {
            heap: Vec::new(),
            order,
        }
    }

    fn is_less(&self, one: usize, other: usize) -> bool {
        match (self.heap.get(one), self.heap.get(other)) {
            (Some(one), Some(other)) => (self.order)(one, other) == Ordering::Less,
            _ => false,
        }
    }

    pub fn push(&mut self, element: T) {
        self.heap.push(element);
        self.rise(self.heap.len() - 1);
    }

    fn rise(&mut self, mut at: usize) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if !self.is_less(parent, at) {
                return;
            }
            self.heap.swap(parent, at);
            at = parent;
        }
    }

    /// The last element takes the place of the largest, sinks to a leaf, always to the larger or else the right child,
    /// and rises again.
    pub fn pop(&mut self) -> Option<T> {
        if self.heap.is_empty() {
            return None;
        }
        let taken = self.heap.swap_remove(0);
        let count = self.heap.len();
        let mut at = 0;
        while 2 * at + 1 < count {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let child = if right < count && !self.is_less(right, left) {
                right
            } else {
                left
            };
            self.heap.swap(at, child);
            at = child;
        }
        self.rise(at);
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn popped(elements: &[(u32, char)]) -> String {
        let mut queue = Queue::new(|one: &(u32, char), other| one.0.cmp(&other.0));
        for &element in elements {
            queue.push(element);
        }
        std::iter::from_fn(|| queue.pop()).map(|it| it.1).collect()
    }

    #[test]
    fn the_largest_comes_first() {
        assert_eq!(popped(&[(2, 'b'), (9, 'i'), (5, 'e'), (7, 'g')]), "igeb");
        assert_eq!(popped(&[]), "");
    }

    /// The letters are the output of `std::priority_queue` with clang 22 and libstdc++ 12.
    #[test]
    fn equal_elements_have_the_order_of_libstdcxx() {
        let equal = |letters: &str| -> String {
            popped(&letters.chars().map(|it| (1, it)).collect::<Vec<_>>())
        };
        assert_eq!(equal("abc"), "abc");
        assert_eq!(equal("abcdefgh"), "acgfhebd");
        let keys = [3, 1, 3, 2, 2, 1, 3, 1, 2, 3, 1, 2, 3];
        let mixed: Vec<_> = keys.into_iter().zip('a'..).collect();
        assert_eq!(popped(&mixed), "acgmjldeikfhb");
    }
}
