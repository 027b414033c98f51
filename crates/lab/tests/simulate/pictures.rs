//! The pictures of the documentation are those that the lab draws now.

use std::io::Read as _;
use std::path::Path;

use tidegate_core::Algorithm;
use tidegate_lab::plot::Plot;
use tidegate_lab::simulate::{Contestant, Keyed, Simulation, demonstrated};

use crate::{limit, simulation, snapshot};

/// Bins of time, as the program has them.
const BINS: usize = 240;

/// A picture of the documentation.
struct Picture {
    name: &'static str,
    patterns: &'static [&'static str],
    keyed: Keyed,
    limit: &'static str,
}

const PICTURES: [Picture; 3] = [
    Picture { name: "edge-burst", patterns: &["edge-burst"], keyed: Keyed::Client, limit: "59/min" },
    Picture {
        name: "first-minute",
        patterns: &["burst:count=60,every=1h", "steady:rate=1/s"],
        keyed: Keyed::Global,
        limit: "60/min",
    },
    Picture { name: "page-load", patterns: &["page-load:clients=1"], keyed: Keyed::Client, limit: "60/min" },
];

fn plot(picture: &Picture, algorithms: &[Algorithm], bins: usize) -> Plot {
    let limits = [limit(picture.limit)];
    let contestants: Vec<_> =
        algorithms.iter().map(|algorithm| Contestant::new(*algorithm, &limits).unwrap()).collect();
    let simulation = Simulation { bins: Some(bins), keyed: picture.keyed, ..simulation(picture.patterns) };
    simulation.run(&contestants).unwrap().to_plot()
}

#[test]
fn the_pictures_of_the_documentation_are_those_that_are_drawn_now() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("docs").join("pictures");
    for picture in PICTURES {
        snapshot::check_file(
            &folder.join(format!("{}.svg", picture.name)),
            &plot(&picture, &demonstrated(), BINS).to_svg(),
        );
    }
}

/// What stands in a chunk of a PNG file.
fn chunk<'a>(png: &'a [u8], name: &[u8; 4]) -> &'a [u8] {
    let at = png.windows(4).position(|four| four == name).unwrap();
    let length = u32::from_be_bytes(png[at - 4..at].try_into().unwrap()) as usize;
    &png[at + 4..at + 4 + length]
}

#[test]
fn a_png_picture_shows_what_the_svg_picture_shows() {
    let png = plot(&PICTURES[0], &[Algorithm::FixedWindow], BINS).to_png();
    let number = |at: usize| u32::from_be_bytes(chunk(&png, b"IHDR")[at..at + 4].try_into().unwrap()) as usize;
    let (width, height) = (number(0), number(4));
    assert_eq!((width, height), (2 * 960, 2 * (96 + 168 + 34)));

    let mut rows = Vec::new();
    flate2::read::ZlibDecoder::new(chunk(&png, b"IDAT")).read_to_end(&mut rows).unwrap();
    assert_eq!(rows.len(), height * (1 + width * 3));
    let mut pixels = vec![vec![0_u8; width * 3]];
    for row in rows.chunks(1 + width * 3) {
        let above = pixels.last().unwrap();
        assert_eq!(row[0], 2, "each row says what it differs by from the one above");
        let row = row[1..].iter().zip(above).map(|(difference, above)| above.wrapping_add(*difference)).collect();
        pixels.push(row);
    }
    // At 1:30 the window holds 118 of 59: blue below the limit's line, and red above it. At 0:30 it holds none.
    let colour = |x: usize, y: usize| pixels[1 + 2 * y][2 * x * 3..][..3].to_vec();
    let (paper, plate, blue, red) = ([0xff, 0xff, 0xff], [0xf6, 0xf8, 0xfa], [0x9e, 0xc5, 0xf0], [0xe5, 0x53, 0x4b]);
    assert_eq!([colour(2, 2), colour(282, 160), colour(718, 200), colour(718, 150)], [paper, plate, blue, red]);
    let ink = (24..400).filter(|x| colour(*x, 28) != paper).count();
    assert!(ink > 20, "the title is written: {ink}");
}

#[test]
fn a_picture_of_a_terminal_keeps_to_its_width() {
    for columns in [80, 120] {
        let plot = plot(&PICTURES[0], &[Algorithm::TokenBucket], Plot::bins_for(columns));
        let text = snapshot::plain(&plot.to_text(columns));
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
        if columns == 80 {
            snapshot::check("plot.txt", &text);
        }
    }
}
