//! Policies decide on simulated requests as they do on real ones.

use tidegate_lab::simulate::Contestant;
use tidegate_policy::file::{Format, read};

use crate::simulation;

const FILE: &str = r#"
[[policies]]
name = "pages"
match = { path = "/" }
limits = "1/min"

[[policies]]
name = "items"
match = { path = "/items/*" }
limits = "30/min burst 5"
"#;

#[test]
fn policies_see_the_paths_and_the_addresses_of_clients() {
    let policies = read("lab.toml", FILE, Format::Toml).unwrap().policies;
    let contestant = Contestant::Policies { name: "lab".to_owned(), policies: Box::new(policies) };
    let row = simulation(&["mix"]).run(std::slice::from_ref(&contestant)).unwrap().rows.remove(0);
    assert!(row.denied > 0 && row.admitted > 0 && row.admitted + row.denied == row.arrivals, "{row:?}");
    assert_eq!((row.worst_period, row.overshoot, row.false_denials), (None, None, None));
    // What nobody limits passes.
    let row = simulation(&["steady:rate=100/s"]).run(std::slice::from_ref(&contestant)).unwrap().rows.remove(0);
    assert_eq!((row.arrivals, row.denied), (30_000, 0));
    // Each client has an address of its own: a scraper is held to its 5 + 150 in five minutes.
    let row = simulation(&["scraper:clients=3"]).run(std::slice::from_ref(&contestant)).unwrap().rows.remove(0);
    assert!((3 * 150..=3 * 155).contains(&row.admitted), "{}", row.admitted);
}

#[test]
fn policies_decide_by_their_own_algorithms_and_traffic_goes_by_their_first_limit() {
    for (algorithm, most) in [("fixed-window", 20), ("sliding-log", 10), ("sliding-counter", 10), ("token-bucket", 10)]
    {
        let file = format!("[[policies]]\nname = \"a\"\nlimits = \"10/h\"\nalgorithm = \"{algorithm}\"\n");
        let policies = read("lab.toml", &file, Format::Toml).unwrap().policies;
        let contestant = Contestant::Policies { name: "lab".to_owned(), policies: Box::new(policies) };
        let report = simulation(&["edge-burst"]).run(std::slice::from_ref(&contestant)).unwrap();
        let row = &report.rows[0];
        assert_eq!((row.arrivals, row.admitted), (20, most), "{algorithm}: ten on each side of a full hour");
        assert_eq!(report.length.as_secs(), 2 * 3_600);
    }
}
