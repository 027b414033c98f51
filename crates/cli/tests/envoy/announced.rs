//! Messages that announce more than they bring.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::server::{Asked, written};

const RULES: &str = "domain: d\ndescriptors:\n  - {key: a, rate_limit: {unit: day, requests_per_unit: 9}}\n";
/// A prefix that says that 4 GiB follow, and the beginning of a message.
const ANNOUNCED: &[u8] = b"\0\xff\xff\xff\xff\x0a\x01d";
const CALLS: usize = 10;

/// The most address space that the server has had.
fn peak_kib(asked: &Asked) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", asked.server.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

/// What a call with this frame is told, fields and trailers.
fn curl(folder: &Path, url: &str) -> String {
    let mut curl = Command::new("curl");
    curl.args(["-sS", "-D", "-", "--http2-prior-knowledge", "-H", "content-type: application/grpc"]);
    let output = curl.args(["-H", "te: trailers", "--data-binary", "@frame", url]).current_dir(folder).output();
    let output = output.unwrap_or_else(|error| panic!("curl: {error}; ./test installs it"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_frame_that_announces_4_gib_costs_nothing_and_is_refused() {
    let folder = TempDir::new().unwrap();
    let asked = Asked::by(&written(folder.path(), "rules.yaml", RULES), &[]);
    fs::write(folder.path().join("frame"), ANNOUNCED).unwrap();
    let before = peak_kib(&asked);
    for (method, code) in [
        ("envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", "13"),
        ("grpc.health.v1.Health/Check", "11"),
        // A conversation, which ends there.
        ("grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "0"),
    ] {
        for _ in 0..CALLS {
            let said = curl(folder.path(), &format!("http://{}/{method}", asked.grpc));
            assert!(said.lines().any(|line| line == format!("grpc-status: {code}")), "{method}: {said}");
        }
    }
    let more = peak_kib(&asked) - before;
    // An allocator may set a GiB aside for what is to come.
    assert!(more < 2 << 20, "{more} KiB of address space for frames of 4 GiB that never came");
}
