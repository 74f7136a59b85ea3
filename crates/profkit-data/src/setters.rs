/// Gives a struct of options `new`, and for each listed field a method of the same name that sets it.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($options:ident { $($field:ident: $value:ty),+ $(,)? }) => {
        impl $options {
            /// Returns the default options.
            pub fn new() -> Self {
                Self::default()
            }

            $(
                #[doc = concat!("Sets the field of this name, [`", stringify!($field), "`](Self#structfield.", stringify!($field), ").")]
                #[must_use]
                pub fn $field(mut self, $field: $value) -> Self {
                    self.$field = $field;
                    self
                }
            )+
        }
    };
}
