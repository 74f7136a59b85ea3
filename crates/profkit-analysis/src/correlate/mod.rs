//! Finds the binaries of raw profiles that hold only counters, and reads the function records of these profiles from
//! the binaries.
mod joined;
mod plan;

pub use joined::{JoinedMetadata, Key, profiles_in};
pub use plan::{Assignment, Match, Plan};
pub use profkit_object::binaries::Binaries;
pub use profkit_object::servers::{
    Artifact, BinaryServers, DownloadProgress, ServersError, servers_from_environment,
};
