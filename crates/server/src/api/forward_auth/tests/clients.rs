//! Who the client is, for whom a proxy asks.

use super::{Asking, BY_CLIENT};

#[tokio::test]
async fn br_118_the_last_entry_is_the_client_whatever_stands_before_it() {
    let asking = Asking::under(BY_CLIENT);
    let mut passed = 0;
    for i in 0..10 {
        let forged = format!("198.51.100.{i}, 203.0.113.7");
        passed += u32::from(asking.status(&[("x-forwarded-for", &forged)]).await == 200);
    }
    // In a line of its own, too.
    assert_eq!(asking.status(&[("x-forwarded-for", "198.51.100.99"), ("x-forwarded-for", "203.0.113.7")]).await, 429);
    assert_eq!((passed, asking.status(&[("x-forwarded-for", "198.51.100.1")]).await), (3, 200));
}

const TRUSTING: &str = r#"
[client]
trust = "10.0.0.0/8"

[[policies]]
name = "api"
limits = "2/min"
"#;

#[tokio::test]
async fn br_125_behind_a_balancer_the_walk_goes_on_from_the_last_entry() {
    let asking = Asking::under(TRUSTING);
    let mut statuses = Vec::new();
    for list in ["203.0.113.7, 10.0.0.11", "203.0.113.7, 10.0.0.12", ", 203.0.113.7 ,,10.0.0.13"] {
        statuses.push(asking.status(&[("x-forwarded-for", list)]).await);
    }
    assert_eq!(statuses, [200, 200, 429]);
    assert_eq!(asking.status(&[("x-forwarded-for", "198.51.100.1, 203.0.113.8")]).await, 200);
}

#[tokio::test]
async fn br_116_and_br_121_a_port_or_another_form_makes_no_other_client() {
    let asking = Asking::under(&BY_CLIENT.replace("3/min", "1/min"));
    let mut statuses = Vec::new();
    for client in ["203.0.113.9:51000", "203.0.113.9:51001", "::ffff:203.0.113.9", "[2001:db8::9]:443", "2001:db8::8"] {
        statuses.push(asking.status(&[("x-forwarded-for", client)]).await);
    }
    assert_eq!(statuses, [200, 429, 429, 200, 429]);
}

#[tokio::test]
async fn br_120_the_addresses_of_one_network_are_one_client() {
    let asking = Asking::under(BY_CLIENT);
    let mut passed = 0;
    for i in 1..=10 {
        let client = format!("2001:db8:1:2::{i:x}");
        passed += u32::from(asking.status(&[("x-forwarded-for", &client)]).await == 200);
    }
    assert_eq!((passed, asking.status(&[("x-forwarded-for", "2001:db8:1:3::1")]).await), (3, 200));
}

#[tokio::test]
async fn br_123_clients_of_a_unix_socket_are_one() {
    let asking = Asking::under(&BY_CLIENT.replace("3/min", "1/min"));
    let forged = [("x-forwarded-for", "203.0.113.7, unix:")];
    assert_eq!((asking.status(&forged).await, asking.status(&[("x-forwarded-for", "unix:")]).await), (200, 429));
}

#[tokio::test]
async fn br_126_another_field_is_believed_only_from_an_address_that_is_trusted() {
    let asking =
        Asking::under(&TRUSTING.replace("trust =", "from = \"cf-connecting-ip\"\ntrust =").replace("2/", "1/"));
    let statuses = [
        asking.status(&[("x-forwarded-for", "10.0.0.1"), ("cf-connecting-ip", "203.0.113.7")]).await,
        asking.status(&[("x-forwarded-for", "10.0.0.1"), ("cf-connecting-ip", "203.0.113.8")]).await,
        asking.status(&[("x-forwarded-for", "203.0.113.99"), ("cf-connecting-ip", "203.0.113.9")]).await,
        asking.status(&[("x-forwarded-for", "203.0.113.99"), ("cf-connecting-ip", "203.0.113.10")]).await,
    ];
    assert_eq!(statuses, [200, 200, 200, 429]);
}

#[tokio::test]
async fn br_126_a_proxy_that_does_not_say_for_whom_it_asks_is_noticed_once() {
    let asking = Asking::under(BY_CLIENT);
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(asking.status(&[("x-forwarded-uri", "/")]).await);
    }
    assert_eq!(statuses, [200, 200, 200, 429], "all are the asker");
    let notices = asking.notices.lock().unwrap();
    assert!(notices.len() == 1 && notices[0].contains("10.0.0.1 asks"), "{notices:?}");
}

#[tokio::test]
async fn br_126_a_proxy_behind_a_balancer_that_nobody_trusts_is_noticed_once() {
    let asking = Asking::under(&BY_CLIENT.replace("3/min", "1000/min"));
    for i in 0..200 {
        let list = format!("203.0.113.{i}, 10.1.1.1");
        assert_eq!(asking.status(&[("x-forwarded-for", &list)]).await, 200);
    }
    let notices = asking.notices.lock().unwrap();
    assert!(notices.len() == 1 && notices[0].contains("trust 10.1.1.1"), "{notices:?}");
}
