//! Reads the directives of 32-bit Arm that change the meaning of the code after them: instruction set, syntax,
//! processor.
use super::statement::Directive;

/// An instruction set of 32-bit Arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArmSet {
    /// The Arm instruction set (A32): instructions of four bytes (`.arm`).
    A32,
    /// The Thumb instruction set: instructions of two and four bytes (`.thumb`).
    T32,
}

/// The settings for 32-bit Arm that apply to a statement. Earlier directives of the file have made them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArmState {
    /// The instruction set in use; `None` if no directive has chosen one.
    pub set: Option<ArmSet>,
    /// Whether the unified syntax is enabled.
    pub unified: bool,
    /// Whether the processor lacks the instruction `movw`. All processors before ARMv7 lack it, except ARMv6T2.
    pub old: bool,
}

impl ArmState {
    pub(super) fn follow(&mut self, directive: Directive<'_>) {
        let arguments = directive.arguments;
        match directive.name {
            b".arm" => self.set = Some(ArmSet::A32),
            b".thumb" | b".thumb_func" => self.set = Some(ArmSet::T32),
            b".code" => match arguments {
                b"32" => self.set = Some(ArmSet::A32),
                b"16" => self.set = Some(ArmSet::T32),
                _ => {}
            },
            b".force_thumb" => self.set = Some(ArmSet::T32),
            b".syntax" => self.unified = arguments == b"unified",
            b".arch" => self.old = is_old_architecture(&arguments.to_ascii_lowercase()),
            b".cpu" => self.old = is_old_processor(&arguments.to_ascii_lowercase()),
            b".eabi_attribute" => {
                let mut values = arguments
                    .split(|&byte| byte == b',')
                    .map(<[u8]>::trim_ascii);
                if let (Some(b"6" | b"Tag_CPU_arch"), Some(value)) = (values.next(), values.next())
                {
                    // The numbers are those of the tag `Tag_CPU_arch` in "Addenda to the ABI for the Arm architecture".
                    self.old = matches!(
                        value,
                        b"0" | b"1"
                            | b"2"
                            | b"3"
                            | b"4"
                            | b"5"
                            | b"6"
                            | b"7"
                            | b"9"
                            | b"11"
                            | b"12"
                    );
                }
            }
            _ => {}
        }
    }
}

fn is_old_architecture(name: &[u8]) -> bool {
    let Some(version) = name.strip_prefix(b"armv") else {
        return matches!(name, b"iwmmxt" | b"iwmmxt2" | b"xscale");
    };
    match version.first() {
        Some(b'2'..=b'5') => true,
        Some(b'6') => !version.starts_with(b"6t2"),
        _ => false,
    }
}

fn is_old_processor(name: &[u8]) -> bool {
    let arm_number = name.strip_prefix(b"arm").and_then(|rest| rest.first());
    let cortex_m = name.strip_prefix(b"cortex-m");
    (arm_number.is_some_and(u8::is_ascii_digit) && !name.starts_with(b"arm1156t2"))
        || matches!(cortex_m, Some(b"0" | b"0plus" | b"0+" | b"1"))
        || cortex_m.is_some_and(|rest| {
            rest.starts_with(b"0.") || rest.starts_with(b"0plus.") || rest.starts_with(b"1.")
        })
        || matches!(
            name,
            b"xscale" | b"iwmmxt" | b"ep9312" | b"mpcore" | b"sc000"
        )
        || name.starts_with(b"strongarm")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &'static str) -> ArmState {
        let mut state = ArmState::default();
        for line in text.lines() {
            let (name, arguments) = line.split_once(' ').unwrap_or((line, ""));
            state.follow(Directive {
                name: name.as_bytes(),
                arguments: arguments.as_bytes(),
            });
        }
        state
    }

    #[test]
    fn directives_tell_the_instruction_set() {
        assert_eq!(after(".text").set, None);
        assert_eq!(after(".thumb").set, Some(ArmSet::T32));
        assert_eq!(after(".code 16\n.arm").set, Some(ArmSet::A32));
        assert_eq!(after(".code 32\n.thumb_func").set, Some(ArmSet::T32));
        assert!(after(".syntax unified").unified);
        assert!(!after(".syntax unified\n.syntax divided").unified);
    }

    #[test]
    fn directives_tell_processors_without_movw() {
        for old in [
            ".arch armv6",
            ".arch armv6-m",
            ".arch armv5te",
            ".arch armv4t",
            ".arch iwmmxt",
            ".cpu arm1136jf-s",
            ".cpu arm7tdmi",
            ".cpu cortex-m0plus",
            ".cpu cortex-m1.small-multiply",
            ".eabi_attribute 6, 6",
            ".eabi_attribute Tag_CPU_arch, 11",
        ] {
            assert!(after(old).old, "{old}");
        }
        for new in [
            ".arch armv6t2",
            ".arch armv7-a",
            ".arch armv7e-m",
            ".arch armv8-a",
            ".cpu cortex-a9",
            ".cpu cortex-m3",
            ".cpu cortex-m33",
            ".cpu cortex-m0\n.cpu cortex-m4",
            ".cpu arm1156t2-s",
            ".eabi_attribute 6, 10",
            ".eabi_attribute 6, 8",
            ".eabi_attribute 9, 2",
        ] {
            assert!(!after(new).old, "{new}");
        }
    }
}
