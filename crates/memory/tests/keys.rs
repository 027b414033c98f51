//! Which keys are one key: those whose bytes are equal, and no others.
#![cfg(not(loom))]

mod common;

use std::hash::Hash;

use common::{limit, limit_id, ms, quota, table};
use tidegate_core::{AtBound, Cost, LimitId};
use tidegate_memory::{Table, TableOptions};

fn seeded(seed: u64) -> Table {
    let mut options = TableOptions::with_keys(1_000);
    options.seed = Some(seed);
    Table::new(options)
}

/// Can each of the keys take its one token?
fn are_separate<K: Hash>(table: &Table, keys: impl IntoIterator<Item = K>) -> bool {
    let limit = limit(table, "1/min", AtBound::Displace);
    keys.into_iter().all(|key| table.check_at(&limit, &key, Cost::ONE, ms(0)).is_allowed())
}

#[test]
fn br_107_parts_are_not_run_together() {
    assert!(are_separate(&table(1_000), [("a:b", "c"), ("a", "b:c"), ("a:b:c", ""), ("", "a:b:c")]));
    assert!(are_separate(&table(1_000), [("api", "2001:db8::1"), ("api:2001", "db8::1")]));
}

#[test]
fn br_111_and_112_any_bytes_are_a_key_of_their_own() {
    let keys: [&[u8]; 12] = [
        b"",
        b"\0",
        b"a",
        b"a\0",
        b"a\0b",
        b"\r\n",
        b"\x1b[31m",
        b"\xff\xfe",
        b"203.0.113.5, 198.51.100.7",
        b"\t",
        "\u{2028}".as_bytes(),
        "jos\u{e9}".as_bytes(),
    ];
    assert!(are_separate(&table(1_000), keys));
}

#[test]
fn br_109_keys_compare_as_bytes() {
    let spellings = ["user@example.org", "USER@example.org", " user@example.org ", "uSeR@Example.ORG"];
    assert!(are_separate(&table(1_000), spellings));
    assert!(are_separate(&table(1_000), ["jos\u{e9}", "jose\u{301}"]));
}

/// The two messages of Wang, Feng, Lai and Yu (2004) that share an MD5 sum.
#[test]
fn br_114_keys_that_collide_under_another_hash_are_separate() {
    let one = MD5_PAIR[0].iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    let other = MD5_PAIR[1].iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
    assert_ne!(one, other);
    assert!(are_separate(&Table::new(TableOptions::with_keys(1_000)), [one, other]));
}

/// Whoever knows the seed can write down keys with equal fingerprints: the hash multiplies (first word ^ seed ^ limit)
/// with the second word, so that a first word of seed ^ limit gives nought whatever the second one is. Under any other
/// seed the same keys are separate, and a table draws its seed at random unless a simulation sets it.
#[test]
fn br_114_keys_that_collide_under_one_seed_are_separate_under_another() {
    const SEED: u64 = 114;
    let colliding = || (0..4_u64).map(|i| (SEED ^ limit_id().as_u64(), i));
    assert!(!are_separate(&seeded(SEED), colliding()), "the first takes the token of all");
    assert!(are_separate(&seeded(SEED + 1), colliding()));
    assert!((0..3).all(|_| are_separate(&Table::new(TableOptions::with_keys(1_000)), colliding())));
}

#[test]
fn the_same_key_under_limits_of_other_names_is_another() {
    let table = table(1_000);
    let quota = quota("1/min");
    for (policy, name) in [("a", "b"), ("ab", ""), ("", "ab"), ("b", "a")] {
        let limit = table.know(LimitId::of(policy, name), &quota, AtBound::Displace).unwrap();
        assert!(table.check_at(&limit, "key", Cost::ONE, ms(0)).is_allowed(), "{policy} {name}");
    }
}

const MD5_PAIR: [[u64; 16]; 2] = [
    [
        0xd131_dd02_c5e6_eec4,
        0x693d_9a06_98af_f95c,
        0x2fca_b587_1246_7eab,
        0x4004_583e_b8fb_7f89,
        0x55ad_3406_09f4_b302,
        0x83e4_8883_2571_415a,
        0x0851_25e8_f7cd_c99f,
        0xd91d_bdf2_8037_3c5b,
        0xd882_3e31_5634_8f5b,
        0xae6d_acd4_36c9_19c6,
        0xdd53_e2b4_87da_03fd,
        0x0239_6306_d248_cda0,
        0xe99f_3342_0f57_7ee8,
        0xce54_b670_80a8_0d1e,
        0xc698_21bc_b6a8_8393,
        0x96f9_652b_6ff7_2a70,
    ],
    [
        0xd131_dd02_c5e6_eec4,
        0x693d_9a06_98af_f95c,
        0x2fca_b507_1246_7eab,
        0x4004_583e_b8fb_7f89,
        0x55ad_3406_09f4_b302,
        0x83e4_8883_25f1_415a,
        0x0851_25e8_f7cd_c99f,
        0xd91d_bd72_8037_3c5b,
        0xd882_3e31_5634_8f5b,
        0xae6d_acd4_36c9_19c6,
        0xdd53_e234_87da_03fd,
        0x0239_6306_d248_cda0,
        0xe99f_3342_0f57_7ee8,
        0xce54_b670_8028_0d1e,
        0xc698_21bc_b6a8_8393,
        0x96f9_65ab_6ff7_2a70,
    ],
];
