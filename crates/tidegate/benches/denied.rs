//! What it adds to a denial to count its key: once for one key, as in a flood, and once for more keys than there are
//! counters.

use std::hint::black_box;
use std::time::Instant;

use tidegate::{DENIED_KEYS_MAX, DeniedKeys, LimitId, Time};

const ROUNDS: u32 = 5_000_000;

fn main() {
    let (limit, keys): (_, Vec<_>) = (LimitId::of("p", "limit-1"), (0..20_000_u64).map(u64::to_le_bytes).collect());
    for counters in [10, 100, DENIED_KEYS_MAX] {
        for (what, count) in [("one key", 1), ("20000 keys", keys.len())] {
            let denied = DeniedKeys::new(counters);
            let since = Instant::now();
            for key in keys[..count].iter().cycle().take(ROUNDS as usize) {
                denied.count(limit, black_box(key), || Time::ZERO);
            }
            let each_ns = since.elapsed().as_nanos() as f64 / f64::from(ROUNDS);
            println!("{counters:>5} counters, {what:<10}  {each_ns:>6.1} ns for each denial");
        }
    }
}
