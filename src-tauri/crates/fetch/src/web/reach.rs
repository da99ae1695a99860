//! Which addresses a request may connect to. A public server that redirects to a private address would make us
//! its hand inside this network (a router's page, another program's local API).

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
};
use tierbar_core::{Code, Error, address::is_public};
use url::{Host, Url};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Anywhere,
    PublicOnly,
    PrivateOnly,
}

type LookupFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

#[derive(Clone)]
pub(super) struct Lookup {
    find: Arc<dyn Fn(String) -> LookupFuture + Send + Sync>,
    /// Tests let a public address lead to their own server.
    #[cfg(test)]
    dial: Option<IpAddr>,
}

impl Lookup {
    pub(super) fn system() -> Self {
        Self::by(|name| async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }

    fn by<F>(find: impl Fn(String) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<Vec<IpAddr>>> + Send + 'static,
    {
        Self {
            find: Arc::new(move |name| Box::pin(find(name))),
            #[cfg(test)]
            dial: None,
        }
    }

    pub(super) async fn addresses(&self, name: String) -> io::Result<Vec<IpAddr>> {
        (self.find)(name).await
    }

    pub(super) fn resolver(&self, reach: Reach) -> Arc<Resolver> {
        Arc::new(Resolver {
            lookup: self.clone(),
            reach,
        })
    }

    fn dialled(&self, ip: IpAddr) -> SocketAddr {
        #[cfg(test)]
        let ip = self.dial.unwrap_or(ip);
        // The port of the URL, or of its scheme, takes the place of 0.
        SocketAddr::new(ip, 0)
    }
}

pub(super) struct Resolver {
    lookup: Lookup,
    reach: Reach,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, reach) = (self.lookup.clone(), self.reach);
        Box::pin(async move {
            let mut found = lookup.addresses(name.as_str().to_owned()).await?;
            let had = !found.is_empty();
            match reach {
                Reach::Anywhere => {}
                Reach::PublicOnly => found.retain(|ip| is_public(*ip)),
                Reach::PrivateOnly => found.retain(|ip| !is_public(*ip)),
            }
            if found.is_empty() && had {
                return Err(match reach {
                    Reach::PublicOnly => Unfit::Private.into(),
                    _ => Unfit::Public.into(),
                });
            }
            let addresses = found.into_iter().map(move |ip| lookup.dialled(ip));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

/// Why a name that has addresses leads nowhere: all of them are these.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unfit {
    #[error("a private address")]
    Private,
    /// The name had private ones before.
    #[error("a public address")]
    Public,
}

pub(super) fn refusal(url: &Url) -> Error {
    Error::new(
        Code::Unreachable,
        format!(
            "{} is inside this machine or network, where a public server may not lead; the request was refused",
            super::host_of(url)
        ),
    )
    .hint("if the file is there, use that address directly")
}

/// Returns the address that stands in a URL in place of a name.
pub(super) fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(ip) => Some(ip.into()),
        Host::Ipv6(ip) => Some(ip.into()),
        Host::Domain(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Lookup {
        /// A fixed table whose addresses all lead to `dial`.
        pub(in crate::web) fn table(table: &[(&str, &str)], dial: IpAddr) -> Self {
            let table: Vec<(String, IpAddr)> = table
                .iter()
                .map(|(name, ip)| ((*name).to_owned(), ip.parse().unwrap()))
                .collect();
            let mut lookup = Self::by(move |name| {
                let found = table.iter().filter(|(known, _)| *known == name);
                std::future::ready(Ok(found.map(|(_, ip)| *ip).collect()))
            });
            lookup.dial = Some(dial);
            lookup
        }

        /// A name whose address is another at each question, up to the last one.
        pub(in crate::web) fn changing(addresses: &[&str], dial: IpAddr) -> Self {
            let addresses: Vec<IpAddr> = addresses.iter().map(|ip| ip.parse().unwrap()).collect();
            let asked = std::sync::atomic::AtomicUsize::new(0);
            let mut lookup = Self::by(move |_| {
                let now = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let now = now.min(addresses.len() - 1);
                std::future::ready(Ok(vec![addresses[now]]))
            });
            lookup.dial = Some(dial);
            lookup
        }
    }
}
