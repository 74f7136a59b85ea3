//! Options whose value is one of a few words.
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// The words of an option: each with what it stands for, and its help text.
pub type Choices<T> = &'static [(&'static str, T, &'static str)];

/// The parser of an option with these words.
pub fn choice<T: Clone + Send + Sync + 'static>(
    choices: Choices<T>,
) -> impl TypedValueParser<Value = T> {
    let values = choices.iter();
    let values = values.map(|(word, _, help)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(values).try_map(move |word| {
        let mut choices = choices.iter();
        let chosen = choices.find_map(|(known, value, _)| (*known == word).then_some(value));
        chosen.cloned().ok_or("an unknown value")
    })
}

/// Names the words of an option, each with its value and its help text.
macro_rules! choices {
    ($(#[$doc:meta])* $vis:vis $name:ident: $type:ty = $($word:literal => $value:expr, $help:literal;)+) => {
        $(#[$doc])*
        $vis const $name: $crate::choice::Choices<$type> = &[$(($word, $value, $help)),+];
    };
}
pub(crate) use choices;
