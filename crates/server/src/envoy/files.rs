//! What the service says of itself to those who ask by reflection: the published files, as far as they say something
//! here, under their own names. So `grpcurl` needs no files of its own.

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    FileDescriptorSet, MethodDescriptorProto, ServiceDescriptorProto,
};

const RLS: &str = ".envoy.service.ratelimit.v3";
const COMMON: &str = ".envoy.extensions.common.ratelimit.v3";
const UNITS: [&str; 8] = ["UNKNOWN", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR", "WEEK"];

/// The files of the rate limit service, and those that they need.
pub(crate) fn files() -> FileDescriptorSet {
    let google =
        |name: &str, messages| file(&format!("google/protobuf/{name}.proto"), "google.protobuf", &[], messages);
    let seconds = vec![one("seconds", 1, Type::Int64), one("nanos", 2, Type::Int32)];
    let wrapped = vec![message("UInt64Value", vec![one("value", 1, Type::Uint64)])];
    let units = FileDescriptorProto {
        enum_type: vec![enumeration("RateLimitUnit", &UNITS[..7])],
        ..file("envoy/type/v3/ratelimit_unit.proto", "envoy.type.v3", &[], Vec::new())
    };
    let files = vec![
        google("duration", vec![message("Duration", seconds)]),
        google("wrappers", wrapped),
        units,
        header_values(),
        descriptors(),
        service(),
    ];
    FileDescriptorSet { file: files }
}

fn header_values() -> FileDescriptorProto {
    let header = message("HeaderValue", vec![text("key", 1), text("value", 2), one("raw_value", 3, Type::Bytes)]);
    file("envoy/config/core/v3/base.proto", "envoy.config.core.v3", &[], vec![header])
}

fn descriptors() -> FileDescriptorProto {
    let unit = of("unit", 2, Type::Enum, ".envoy.type.v3.RateLimitUnit");
    let descriptor = DescriptorProto {
        nested_type: vec![
            message("Entry", vec![text("key", 1), text("value", 2)]),
            message("RateLimitOverride", vec![one("requests_per_unit", 1, Type::Uint32), unit]),
        ],
        ..message(
            "RateLimitDescriptor",
            vec![
                many(part("entries", 1, &format!("{COMMON}.RateLimitDescriptor.Entry"))),
                part("limit", 2, &format!("{COMMON}.RateLimitDescriptor.RateLimitOverride")),
                part("hits_addend", 3, ".google.protobuf.UInt64Value"),
                one("is_negative_hits", 4, Type::Bool),
            ],
        )
    };
    let needs = ["envoy/type/v3/ratelimit_unit.proto", "google/protobuf/wrappers.proto"];
    let package = "envoy.extensions.common.ratelimit.v3";
    file("envoy/extensions/common/ratelimit/v3/ratelimit.proto", package, &needs, vec![descriptor])
}

fn service() -> FileDescriptorProto {
    let request = message(
        "RateLimitRequest",
        vec![
            text("domain", 1),
            many(part("descriptors", 2, &format!("{COMMON}.RateLimitDescriptor"))),
            one("hits_addend", 3, Type::Uint32),
        ],
    );
    let method = MethodDescriptorProto {
        name: Some("ShouldRateLimit".to_owned()),
        input_type: Some(format!("{RLS}.RateLimitRequest")),
        output_type: Some(format!("{RLS}.RateLimitResponse")),
        ..MethodDescriptorProto::default()
    };
    let service =
        ServiceDescriptorProto { name: Some("RateLimitService".to_owned()), method: vec![method], options: None };
    let needs = [
        "envoy/config/core/v3/base.proto",
        "envoy/extensions/common/ratelimit/v3/ratelimit.proto",
        "google/protobuf/duration.proto",
    ];
    let package = "envoy.service.ratelimit.v3";
    let file = file("envoy/service/ratelimit/v3/rls.proto", package, &needs, vec![request, response()]);
    FileDescriptorProto { service: vec![service], ..file }
}

fn response() -> DescriptorProto {
    let within = |name: &str| format!("{RLS}.RateLimitResponse.{name}");
    let unit = of("unit", 2, Type::Enum, &within("RateLimit.Unit"));
    let limit = DescriptorProto {
        enum_type: vec![enumeration("Unit", &UNITS)],
        ..message("RateLimit", vec![text("name", 3), one("requests_per_unit", 1, Type::Uint32), unit])
    };
    let status = message(
        "DescriptorStatus",
        vec![
            of("code", 1, Type::Enum, &within("Code")),
            part("current_limit", 2, &within("RateLimit")),
            one("limit_remaining", 3, Type::Uint32),
            part("duration_until_reset", 4, ".google.protobuf.Duration"),
        ],
    );
    DescriptorProto {
        enum_type: vec![enumeration("Code", &["UNKNOWN", "OK", "OVER_LIMIT"])],
        nested_type: vec![limit, status],
        ..message(
            "RateLimitResponse",
            vec![
                of("overall_code", 1, Type::Enum, &within("Code")),
                many(part("statuses", 2, &within("DescriptorStatus"))),
                many(part("response_headers_to_add", 3, ".envoy.config.core.v3.HeaderValue")),
            ],
        )
    }
}

fn file(name: &str, package: &str, needs: &[&str], messages: Vec<DescriptorProto>) -> FileDescriptorProto {
    FileDescriptorProto {
        name: Some(name.to_owned()),
        package: Some(package.to_owned()),
        dependency: needs.iter().map(|name| (*name).to_owned()).collect(),
        message_type: messages,
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    }
}

fn message(name: &str, field: Vec<FieldDescriptorProto>) -> DescriptorProto {
    DescriptorProto { name: Some(name.to_owned()), field, ..DescriptorProto::default() }
}

/// Values from 0 on.
fn enumeration(name: &str, values: &[&str]) -> EnumDescriptorProto {
    let value = |(number, name): (i32, &&str)| EnumValueDescriptorProto {
        name: Some((*name).to_owned()),
        number: Some(number),
        options: None,
    };
    let value = (0..).zip(values).map(value).collect();
    EnumDescriptorProto { name: Some(name.to_owned()), value, ..EnumDescriptorProto::default() }
}

fn one(name: &str, number: i32, kind: Type) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(Label::Optional.into()),
        r#type: Some(kind.into()),
        ..FieldDescriptorProto::default()
    }
}

fn text(name: &str, number: i32) -> FieldDescriptorProto {
    one(name, number, Type::String)
}

fn part(name: &str, number: i32, of_type: &str) -> FieldDescriptorProto {
    of(name, number, Type::Message, of_type)
}

fn of(name: &str, number: i32, kind: Type, of_type: &str) -> FieldDescriptorProto {
    FieldDescriptorProto { type_name: Some(of_type.to_owned()), ..one(name, number, kind) }
}

fn many(field: FieldDescriptorProto) -> FieldDescriptorProto {
    FieldDescriptorProto { label: Some(Label::Repeated.into()), ..field }
}
