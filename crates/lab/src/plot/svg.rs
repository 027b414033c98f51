//! A plot as SVG, written by hand: a few rectangles, paths and words, no script, light or dark as the reader has it.

use std::fmt::Write as _;

use super::scale::times;
use super::{Panel, Plot};
use crate::words::{Clock, grouped};

const WIDTH: u64 = 960;
const LEFT: u64 = 64;
const RIGHT: u64 = 936;
const HEAD: u64 = 96;
/// The height of a panel with its title, and of the parts below that.
const PANEL: u64 = 168;
const TITLE: u64 = 30;
const AREA: u64 = 88;
const STRIP: u64 = 32;
const FOOT: u64 = 34;
/// Colours that are told apart without red and green, on white and on black.
const STYLE: &str = "\
text{font:13px system-ui,'Segoe UI','DejaVu Sans',sans-serif;fill:#24292f}\
.h{font-size:20px;font-weight:600}.p{font-size:15px;font-weight:600}.d{fill:#57606a}.b{fill:#b42318;font-weight:600}\
.bg{fill:#fff}.plate{fill:#f6f8fa}.area{fill:#9ec5f0}.edge{fill:none;stroke:#1f6feb;stroke-width:2}\
.over{fill:#e5534b}.limit{stroke:#24292f;stroke-width:1.5;stroke-dasharray:6 4}.tick{stroke:#d0d7de}\
.level{fill:none;stroke:#b08800;stroke-width:1.6}.pass{fill:#1f6feb}.deny{fill:#e5534b}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.d{fill:#8b949e}.b{fill:#ff7b72}.bg{fill:#0d1117}.plate{fill:#161b22}\
.area{fill:#1f3d66}.edge{stroke:#58a6ff}.over{fill:#f85149}.limit{stroke:#e6edf3}.tick{stroke:#30363d}\
.level{stroke:#e3b341}.pass{fill:#58a6ff}.deny{fill:#f85149}}";

impl Plot {
    /// The plot as a picture of 960 pixels across.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let height = HEAD + PANEL * self.panels.len() as u64 + FOOT;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" role=\"img\" aria-label=\"{}\">\n<style>{STYLE}</style>\n",
            escaped(&self.title)
        );
        rect(&mut out, "bg", 0, 0, WIDTH, height);
        text(&mut out, "h", 24, 34, "start", &self.title);
        text(&mut out, "d", 24, 56, "start", &self.subtitle);
        self.legend(&mut out);
        for (panel, i) in self.panels.iter().zip(0..) {
            self.panel(&mut out, panel, HEAD + PANEL * i);
        }
        self.time_axis(&mut out, HEAD + PANEL * self.panels.len() as u64);
        out.push_str("</svg>\n");
        out
    }

    fn legend(&self, out: &mut String) {
        let y = 80;
        let mut x = 24;
        let mut word = |out: &mut String, name: &str, sign: &dyn Fn(&mut String, u64)| {
            sign(out, x);
            text(out, "d", x + 24, y, "start", name);
            x += 24 + 7 * name.chars().count() as u64 + 22;
        };
        word(out, &self.area_name, &|out, x| rect(out, "area", x, y - 10, 16, 10));
        let has_limit = self.panels.iter().any(|panel| panel.limit.is_some());
        if has_limit {
            word(out, "above the limit", &|out, x| rect(out, "over", x, y - 10, 16, 10));
            word(out, "the limit", &|out, x| line(out, "limit", x, y - 5, x + 18, y - 5));
        }
        if self.panels.iter().any(|panel| !panel.level.is_empty()) {
            word(out, "left in the bucket", &|out, x| line(out, "level", x, y - 5, x + 18, y - 5));
        }
        word(out, "passed", &|out, x| rect(out, "pass", x, y - 10, 6, 10));
        word(out, "denied", &|out, x| rect(out, "deny", x, y - 10, 6, 10));
    }

    fn panel(&self, out: &mut String, panel: &Panel, top: u64) {
        text(out, "p", LEFT, top + 18, "start", &panel.title);
        text(out, if panel.is_broken { "b" } else { "d" }, RIGHT, top + 18, "end", &panel.note);
        let (top, most) = (top + TITLE, self.most() + self.most() / 10);
        rect(out, "plate", LEFT, top, RIGHT - LEFT, AREA + 4 + STRIP);
        let base = top + AREA;
        let height = |value: u64| tenths(value, most, AREA);
        self.area(out, panel, base, &height);
        if let Some(limit) = panel.limit {
            let y = At(base * 10 - height(limit));
            let _ = writeln!(out, "<path class=\"limit\" d=\"M{LEFT} {y}H{RIGHT}\"/>");
            let label = At((base * 10 - height(limit)) + 45);
            let _ =
                writeln!(out, "<text x=\"{}\" y=\"{label}\" text-anchor=\"end\">{}</text>", LEFT - 8, grouped(limit));
        }
        line(out, "tick", LEFT, base, RIGHT, base);
        text(out, "d", LEFT - 8, base + 4, "end", "0");
        self.strip(out, panel, base + 4);
    }

    /// The area under what a window held, what of it is above the limit, and the level of the bucket.
    fn area(&self, out: &mut String, panel: &Panel, base: u64, height: &dyn Fn(u64) -> u64) {
        let outline = self.steps(&panel.area, base, height);
        let close = format!("V{base}H{LEFT}Z");
        let _ = writeln!(out, "<path class=\"area\" d=\"M{LEFT} {base}{outline}{close}\"/>");
        if let Some(limit) = panel.limit.filter(|limit| panel.area.iter().any(|value| value > limit)) {
            let line = At(base * 10 - height(limit));
            let above: Vec<_> = panel.area.iter().map(|value| (*value).max(limit)).collect();
            let outline = self.steps(&above, base, height);
            let _ = writeln!(out, "<path class=\"over\" d=\"M{LEFT} {line}{outline}V{line}Z\"/>");
        }
        let _ = writeln!(out, "<path class=\"edge\" d=\"M{LEFT} {base}{outline}\"/>");
        if !panel.level.is_empty() {
            let outline = self.steps(&panel.level, base, height);
            let (first, rest) = (At(base * 10 - height(panel.level[0])), outline);
            let _ = writeln!(out, "<path class=\"level\" d=\"M{LEFT} {first}{rest}\"/>");
        }
    }

    /// Values as a line of steps: up or down to the value, then along its bin. Bins alike are one step.
    fn steps(&self, values: &[u64], base: u64, height: &dyn Fn(u64) -> u64) -> String {
        let mut path = String::new();
        for (i, value) in values.iter().enumerate() {
            let is_last_alike = values.get(i + 1) != Some(value);
            if i == 0 || values[i - 1] != *value {
                let _ = write!(path, "V{}", At(base * 10 - height(*value)));
            }
            if is_last_alike {
                let _ = write!(path, "H{}", x_of(i + 1, values.len()));
            }
        }
        path
    }

    /// The requests of each bin, those that were denied upon those that passed.
    fn strip(&self, out: &mut String, panel: &Panel, top: u64) {
        let (busiest, bottom) = (self.busiest(), (top + STRIP) * 10);
        let bins = panel.admitted.len();
        let mut bars = [String::new(), String::new()];
        for (i, (admitted, denied)) in panel.admitted.iter().zip(&panel.denied).enumerate() {
            let passed = tenths(*admitted, busiest, STRIP).max(if *admitted > 0 { 10 } else { 0 });
            let refused = tenths(*denied, busiest, STRIP).max(if *denied > 0 { 10 } else { 0 });
            // Wide enough to be seen, also of a bin that is narrower than a pixel.
            let (x, width) = (x_of(i, bins), At(x_of(i + 1, bins).0.saturating_sub(x_of(i, bins).0).max(20)));
            for (bar, from, height) in [(0, 0, passed), (1, passed, refused)] {
                if height > 0 {
                    let y = At(bottom - from - height);
                    let _ = write!(bars[bar], "M{x} {y}h{width}v{}h-{width}z", At(height));
                }
            }
        }
        for (bar, class) in bars.iter().zip(["pass", "deny"]) {
            if !bar.is_empty() {
                let _ = writeln!(out, "<path class=\"{class}\" d=\"{bar}\"/>");
            }
        }
    }

    fn time_axis(&self, out: &mut String, top: u64) {
        let span = u128::from(self.length_ns.max(1));
        for tick in times(self.length_ns, 8) {
            let x = LEFT + (u128::from(tick.as_nanos()) * u128::from(RIGHT - LEFT) / span) as u64;
            line(out, "tick", x, top - 14, x, top - 8);
            text(out, "d", x, top + 8, "middle", &Clock(tick).to_string());
        }
    }
}

/// A place or a length in tenths of a pixel.
#[derive(Clone, Copy)]
struct At(u64);

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 % 10 {
            0 => write!(f, "{}", self.0 / 10),
            tenth => write!(f, "{}.{tenth}", self.0 / 10),
        }
    }
}

/// The left edge of bin `i` of so many.
fn x_of(i: usize, bins: usize) -> At {
    At(LEFT * 10 + (RIGHT - LEFT) * 10 * i as u64 / bins.max(1) as u64)
}

/// How high a value is where `most` is `height` pixels high, in tenths of a pixel.
fn tenths(value: u64, most: u64, height: u64) -> u64 {
    (u128::from(value) * u128::from(height * 10) / u128::from(most.max(1))) as u64
}

fn rect(out: &mut String, class: &str, x: u64, y: u64, width: u64, height: u64) {
    let _ = writeln!(out, "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>");
}

fn line(out: &mut String, class: &str, x: u64, y: u64, x2: u64, y2: u64) {
    let _ = writeln!(out, "<path class=\"{class}\" d=\"M{x} {y}L{x2} {y2}\"/>");
}

fn text(out: &mut String, class: &str, x: u64, y: u64, anchor: &str, words: &str) {
    let words = escaped(words);
    let _ = writeln!(out, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{words}</text>");
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
