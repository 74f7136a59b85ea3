use rust_client::{from_roman, to_roman};

#[test]
fn there_and_back() {
    for number in 1..4000 {
        assert_eq!(to_roman(number).as_deref().and_then(from_roman), Some(number));
    }
}

#[test]
fn refuses_zero() {
    assert_eq!(to_roman(0), None);
}
