//! One limit for all processes of a service, in Redis or Valkey.
//!
//! ```text
//! cargo run -p tidegate --features redis --example shared -- redis://127.0.0.1:6379
//! ```
//!
//! Run it in two terminals: together they pass five a minute. Stop the server, and each goes on by itself.

use std::error::Error;

use tidegate::redis::{RedisOptions, RedisStore};
use tidegate::{Cost, Limiter, Shared, SharedOptions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let store = Shared::new(RedisStore::new(&url, RedisOptions::default())?, SharedOptions::default());
    let limiter = Limiter::builder().limit("per-user", "5/min".parse()?).over(store);

    for request in 1..=8 {
        let answer = limiter.decide("user-42", Cost::ONE).await?;
        let decided_by = answer.source.name();
        match answer.retry_after_s() {
            None => println!("request {request} passes (decided by {decided_by})"),
            Some(s) => println!("request {request} is denied, retry after {s} s (decided by {decided_by})"),
        }
    }
    Ok(())
}
