//! Finds the binaries of raw profiles that hold counters only, and joins the two.
mod joined;
mod plan;
mod servers;

pub use joined::{Joined, Key, profiles_in};
pub use plan::{Assignment, Binaries, Match, Plan};
pub use servers::{
    Artifact, BinaryServers, DownloadProgress, ServersError, servers_from_environment,
};
