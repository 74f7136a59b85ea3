//! Flame graphs as SVG. Any browser shows the picture without a script, and its text can be searched.
use crate::flame_graph::{FlameFrame, FlameGraph};
use crate::{grouped, percent};
use profkit_data::share;
use std::fmt::Write;

/// The width of the picture in its own units. A browser scales the picture with the window.
const WIDTH: f64 = 1200.0;
/// The width of the space at the left and at the right edge of the picture.
const MARGIN: f64 = 10.0;
/// The height of a frame together with the gap between it and the next frame.
const ROW: usize = 17;
/// The height of the space for the title and the subtitle.
const HEAD: usize = 54;
/// The height of the space for the note at the bottom of the picture.
const FOOT: usize = 26;
/// The width below which a frame is not drawn. Narrower frames cannot be seen, and a graph may have thousands of them.
const NARROWEST: f64 = 0.2;
/// The largest number of rows of frames that are drawn.
const MOST_ROWS: usize = 400;
/// The width of a letter in the font of the frames.
const LETTER: f64 = 6.7;
/// The number of letters to which a name in a tooltip is cut.
const MOST_NAME: usize = 1024;

/// The texts of the picture, and how its frames are coloured.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// The heading.
    pub title: &'a str,
    /// The line below the heading.
    pub subtitle: &'a str,
    /// The unit of the weights, in the plural: `bytes`.
    pub unit: &'a str,
    /// Whether the colour of a frame shows how cold or hot it is. Otherwise the colour depends on the name.
    pub by_temperature: bool,
}

/// Draws a flame graph, with callers below the functions that they call. The same graph gives the same bytes.
pub fn draw(graph: &FlameGraph, labels: &Labels) -> String {
    let rows = graph.depth().min(MOST_ROWS) + 1;
    let height = HEAD + rows * ROW + FOOT;
    let mut svg = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"100%\" role=\"img\">\n\
         <style>\n\
         svg {{ background: #fff; font: 12px Verdana, DejaVu Sans, sans-serif; }}\n\
         text {{ fill: #111; }}\n\
         .title {{ font-size: 17px; text-anchor: middle; }}\n\
         .note {{ fill: #555; text-anchor: middle; }}\n\
         g rect {{ stroke: #fff; stroke-width: .5; rx: 2; }}\n\
         g text {{ pointer-events: none; }}\n\
         g:hover rect {{ stroke: #000; stroke-width: 1; }}\n\
         </style>\n"
    );
    let middle = WIDTH / 2.0;
    let _ = writeln!(
        svg,
        "<text class=\"title\" x=\"{middle}\" y=\"24\">{}</text>\n<text class=\"note\" x=\"{middle}\" y=\"42\">{}</text>",
        Xml(labels.title),
        Xml(labels.subtitle)
    );
    let total = graph.total();
    let mut left_out = 0u64;
    for frame in graph.frames() {
        let width = share(frame.weight, total) * (WIDTH - 2.0 * MARGIN);
        if width < NARROWEST || frame.depth >= rows {
            left_out += 1;
            continue;
        }
        let x = MARGIN + share(frame.start, total) * (WIDTH - 2.0 * MARGIN);
        let y = HEAD + (rows - 1 - frame.depth) * ROW;
        draw_frame(&mut svg, &frame, labels, total, (x, y, width));
    }
    if left_out > 0 {
        let what = if left_out == 1 {
            "frame is"
        } else {
            "frames are"
        };
        let _ = writeln!(
            svg,
            "<text class=\"note\" x=\"{middle}\" y=\"{}\">{} {what} too small to be drawn</text>",
            height - 8,
            grouped(left_out)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_frame(
    svg: &mut String,
    frame: &FlameFrame,
    labels: &Labels,
    total: u128,
    (x, y, width): (f64, usize, f64),
) {
    let (red, green, blue) = if frame.depth == 0 {
        (225, 225, 225)
    } else if labels.by_temperature {
        temperature(frame)
    } else {
        by_name(frame.name)
    };
    let _ = write!(
        svg,
        "<g><title>{} ({} {}, {})</title><rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{}\" \
         fill=\"rgb({red},{green},{blue})\"/>",
        Xml(&cut(frame.name, MOST_NAME)),
        grouped(frame.weight),
        Xml(labels.unit),
        percent(frame.weight, total),
        ROW - 1,
    );
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number of letters is between 0 and 200"
    )]
    let letters = ((width - 6.0) / LETTER).max(0.0) as usize;
    if letters >= 3 {
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\">{}</text>",
            x + 3.0,
            y + 12,
            Xml(&cut(frame.name, letters))
        );
    }
    svg.push_str("</g>\n");
}

/// Returns the colour of a frame by its temperature: between blue (cold), sand and red (hot).
fn temperature(frame: &FlameFrame) -> (u8, u8, u8) {
    let mix = |warm: f64, cold: f64, hot: f64| {
        byte(warm * (1.0 - frame.cold - frame.hot) + cold * frame.cold + hot * frame.hot)
    };
    (
        mix(240.0, 110.0, 235.0),
        mix(200.0, 165.0, 95.0),
        mix(110.0, 235.0, 75.0),
    )
}

/// Returns a warm colour that depends only on the name (by its FNV-1a hash).
fn by_name(name: &str) -> (u8, u8, u8) {
    let hash = name.bytes().fold(0x811c_9dc5u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let part = |shift: u32| f64::from(hash >> shift & 0xff) / 255.0;
    (
        byte(210.0 + 40.0 * part(0)),
        byte(110.0 + 100.0 * part(8)),
        byte(50.0 + 50.0 * part(16)),
    )
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped"
)]
fn byte(part: f64) -> u8 {
    part.clamp(0.0, 255.0) as u8
}

fn cut(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    let mut cut: String = name.chars().take(most.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// A text that is escaped for XML when it is written. Most control characters cannot be written in XML, and marks of
/// the writing direction could make a name look like another name. So both are replaced.
struct Xml<'a>(&'a str);

impl std::fmt::Display for Xml<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for one in self.0.chars() {
            match one {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => {
                    f.write_char(char::REPLACEMENT_CHARACTER)?;
                }
                one if one.is_control() => f.write_char(char::REPLACEMENT_CHARACTER)?,
                one => f.write_char(one)?,
            }
        }
        Ok(())
    }
}
