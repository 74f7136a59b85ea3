//! Formats the counts of what was left out of a file. The `Losses` types of all profile families use this text.
use std::fmt;

pub(crate) fn fmt_counts(
    f: &mut fmt::Formatter<'_>,
    counts: impl Iterator<Item = (u64, &'static str)>,
) -> fmt::Result {
    let mut separator = "";
    for (count, what) in counts {
        write!(f, "{separator}{what}: {count}")?;
        separator = ", ";
    }
    if separator.is_empty() {
        f.write_str("nothing")?;
    }
    Ok(())
}

/// Defines the `Losses` of a family: for each part, its count and a plural noun for messages.
#[cfg(any(feature = "sample", feature = "memprof", feature = "mip"))]
macro_rules! losses {
    ($(#[$about:meta])* pub struct Losses { $($(#[$doc:meta])* $part:ident = $noun:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Losses {
            $($(#[$doc])* pub $part: u64,)+
        }

        impl Losses {
            /// Whether the file holds the whole profile: nothing was left out.
            pub fn is_empty(&self) -> bool {
                *self == Self::default()
            }

            /// Returns the counts that are not 0, each with a plural noun for messages.
            pub fn counts(&self) -> impl Iterator<Item = (u64, &'static str)> {
                let counts = [$((self.$part, $noun)),+].into_iter();
                counts.filter(|&(count, _)| count != 0)
            }
        }

        /// Writes the [`counts`](Losses::counts) in one line, or `nothing` if there are none.
        impl std::fmt::Display for Losses {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::loss_counts::fmt_counts(f, self.counts())
            }
        }
    };
}
