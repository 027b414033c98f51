//! A plot as SVG, written by hand: a few rectangles, paths and words, no script, light or dark as the reader has it.

use std::fmt::{self, Write as _};

use super::drawing::{Anchor, At, Drawing, Ink, Shape, Steps};
use super::{Bars, Plot};

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
    /// The plot as an SVG picture of 960 pixels across.
    #[must_use]
    pub fn to_svg(&self) -> String {
        self.drawing().to_svg()
    }
}

impl Bars {
    /// The bars as an SVG picture of 960 pixels across.
    #[must_use]
    pub fn to_svg(&self) -> String {
        self.drawing().to_svg()
    }
}

impl Drawing {
    fn to_svg(&self) -> String {
        let (width, height) = (self.width, self.height);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" aria-label=\"{}\">\n<style>{STYLE}</style>\n",
            escaped(&self.title)
        );
        for shape in &self.shapes {
            // Writing to a text cannot fail.
            let _ = write_shape(&mut out, shape);
        }
        out.push_str("</svg>\n");
        out
    }
}

fn write_shape(out: &mut String, shape: &Shape) -> fmt::Result {
    match shape {
        Shape::Rect { ink, x, y, width, height } => {
            let class = class(*ink);
            writeln!(out, "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>")
        }
        Shape::Line { ink, from, to } => {
            let class = class(*ink);
            writeln!(out, "<path class=\"{class}\" d=\"M{} {}L{} {}\"/>", from.0, from.1, to.0, to.1)
        }
        Shape::Area { ink, floor, steps } => {
            let (class, left, line) = (class(*ink), At::LEFT, along(steps));
            writeln!(out, "<path class=\"{class}\" d=\"M{left} {floor}{line}V{floor}H{left}Z\"/>")
        }
        Shape::Outline { ink, from, steps } => {
            writeln!(out, "<path class=\"{}\" d=\"M{} {from}{}\"/>", class(*ink), At::LEFT, along(steps))
        }
        Shape::Bars { ink, bars } => {
            write!(out, "<path class=\"{}\" d=\"", class(*ink))?;
            for [x, y, width, height] in bars {
                write!(out, "M{x} {y}h{width}v{height}h-{width}z")?;
            }
            out.write_str("\"/>\n")
        }
        Shape::Text { ink, anchor, x, y, words } => {
            let (class, words) = (class(*ink), escaped(words));
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            writeln!(out, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{words}</text>")
        }
    }
}

/// Along the steps: up or down to the height of each, then to its end.
fn along(steps: &Steps) -> String {
    steps.each().map(|step| format!("V{}H{}", step.y, step.right)).collect()
}

fn class(ink: Ink) -> &'static str {
    match ink {
        Ink::Paper => "bg",
        Ink::Plate => "plate",
        Ink::Area => "area",
        Ink::Edge => "edge",
        Ink::Over => "over",
        Ink::Limit => "limit",
        Ink::Tick => "tick",
        Ink::Level => "level",
        Ink::Passed => "pass",
        Ink::Denied => "deny",
        Ink::Title => "h",
        Ink::PanelTitle => "p",
        Ink::Word => "w",
        Ink::DimWord => "d",
        Ink::BadWord => "b",
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 % 10 {
            0 => write!(f, "{}", self.0 / 10),
            tenth => write!(f, "{}.{tenth}", self.0 / 10),
        }
    }
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
