//! Prints `show --sample --json` (`SampleProfileReader::dumpJson`).
use super::show::Show;
use crate::lines::Lines;
use profkit_data::sample::{Location, NameId, SampleProfile, Samples};

/// Prints all functions.
pub fn profile(lines: &mut Lines<'_>, profile: &SampleProfile, show: &Show<'_>) {
    let mut json = Json {
        lines,
        show,
        depth: 0,
        first: true,
    };
    json.open(b'[');
    for index in profile.llvm_order(&show.ranks) {
        if let Some(function) = profile.functions().get(index as usize) {
            json.element();
            json.samples(&function.samples, true);
        }
    }
    json.close(b']');
    json.lines.end();
}

struct Json<'l, 's, 'p> {
    lines: &'l mut Lines<'s>,
    show: &'p Show<'p>,
    depth: usize,
    /// Whether the innermost open array or object is still empty.
    first: bool,
}

impl Json<'_, '_, '_> {
    fn open(&mut self, bracket: u8) {
        self.lines.text([bracket]);
        self.depth += 1;
        self.first = true;
    }

    fn close(&mut self, bracket: u8) {
        self.depth -= 1;
        if !self.first {
            self.line();
        }
        self.lines.text([bracket]);
        self.first = false;
    }

    fn line(&mut self) {
        self.lines.end();
        self.lines.text("  ".repeat(self.depth));
    }

    /// Begins an element of an array or a member of an object on a new line. If it is not the first one, a comma ends
    /// the line before it.
    fn element(&mut self) {
        if !self.first {
            self.lines.text(b",");
        }
        self.first = false;
        self.line();
    }

    fn key(&mut self, key: &str) {
        self.element();
        self.lines.text(b"\"").text(key).text(b"\": ");
    }

    fn number(&mut self, key: &str, value: u64) {
        self.key(key);
        self.lines.number(value);
    }

    fn string(&mut self, key: &str, id: NameId) {
        self.key(key);
        let name = self.show.name(id);
        let text = String::from_utf8_lossy(&name);
        self.lines.text(b"\"");
        for character in text.chars() {
            match character {
                '"' => self.lines.text(b"\\\""),
                '\\' => self.lines.text(b"\\\\"),
                '\t' => self.lines.text(b"\\t"),
                '\n' => self.lines.text(b"\\n"),
                '\r' => self.lines.text(b"\\r"),
                '\0'..=' ' if character != ' ' => {
                    self.lines.text(format!("\\u{:04x}", u32::from(character)))
                }
                _ => self.lines.text(character.to_string()),
            };
        }
        self.lines.text(b"\"");
    }

    fn location(&mut self, location: Location) {
        self.number("line", u64::from(location.line));
        if location.discriminator > 0 {
            self.number("discriminator", u64::from(location.discriminator));
        }
    }

    fn samples(&mut self, samples: &Samples, top_level: bool) {
        self.open(b'{');
        self.string("name", samples.name);
        self.number("total", samples.total);
        if top_level {
            self.number("head", samples.head);
        }
        if !samples.body.is_empty() {
            self.key("body");
            self.open(b'[');
            for line in &samples.body {
                self.element();
                self.open(b'{');
                self.location(line.location);
                self.number("samples", line.samples);
                let targets = self.show.targets(samples, line.location);
                if !targets.is_empty() {
                    self.key("calls");
                    self.open(b'[');
                    for (name, count) in targets {
                        self.element();
                        self.open(b'{');
                        self.string("function", name);
                        self.number("samples", count);
                        self.close(b'}');
                    }
                    self.close(b']');
                }
                self.close(b'}');
            }
            self.close(b']');
        }
        if !samples.inlined.is_empty() {
            self.key("callsites");
            self.open(b'[');
            for (location, inlined) in self.show.inlined(samples) {
                self.element();
                self.open(b'{');
                self.location(location);
                self.key("samples");
                self.open(b'[');
                self.element();
                self.samples(inlined, false);
                self.close(b']');
                self.close(b'}');
            }
            self.close(b']');
        }
        self.close(b'}');
    }
}
