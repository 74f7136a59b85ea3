//! Raw profiles that hold counters only, joined to the binaries that wrote them.
mod joined;
mod plan;
mod servers;

pub use joined::{Joined, Key, profiles_in};
pub use plan::{Assignment, Binaries, Match, Plan};
pub use servers::{
    Artifact, BinaryServers, DownloadProgress, ServersError, servers_from_environment,
};
