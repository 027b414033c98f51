//! The pictures of the documentation are those that the lab draws now.

use std::path::Path;

use tidegate_core::Algorithm;
use tidegate_lab::simulate::{Contestant, Simulation, demonstrated};

use crate::{limit, simulation, snapshot};

/// Bins of time, as the program has them.
const BINS: usize = 240;

/// A picture of the documentation: its name, the traffic, the limit, and the algorithms.
struct Picture(&'static str, &'static str, &'static str, Vec<Algorithm>);

fn pictures() -> Vec<Picture> {
    vec![
        Picture("edge-burst", "edge-burst", "59/min", demonstrated()),
        Picture("page-load", "page-load:clients=1", "60/min", demonstrated()),
    ]
}

fn drawn(Picture(_, pattern, text, algorithms): &Picture) -> String {
    let contestants: Vec<_> =
        algorithms.iter().map(|algorithm| Contestant::new(*algorithm, &[limit(text)]).unwrap()).collect();
    let simulation = Simulation { bins: Some(BINS), ..simulation(&[pattern]) };
    simulation.run(&contestants).unwrap().to_plot().to_svg()
}

#[test]
fn the_pictures_of_the_documentation_are_those_that_are_drawn_now() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("docs").join("pictures");
    for picture in pictures() {
        snapshot::check_file(&folder.join(format!("{}.svg", picture.0)), &drawn(&picture));
    }
}

#[test]
fn a_picture_of_a_terminal_keeps_to_its_width() {
    let contestant = Contestant::new(Algorithm::TokenBucket, &[limit("59/min")]).unwrap();
    let simulation = Simulation { bins: Some(BINS), ..simulation(&["edge-burst"]) };
    let report = simulation.run(&[contestant]).unwrap();
    for columns in [80, 120] {
        let text = snapshot::plain(&report.to_plot().to_text(columns));
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
    }
    snapshot::check("plot.txt", &report.to_plot().to_text(80));
}
