//! Which addresses a request may connect to. A public server that redirects to a private address would make us
//! its hand inside this network (a router's page, another program's local API).

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::{
    fmt,
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

/// How names become addresses.
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

    /// A fixed table whose addresses all lead to `dial`.
    #[cfg(test)]
    pub(super) fn table(table: &[(&str, &str)], dial: IpAddr) -> Self {
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
    #[cfg(test)]
    pub(super) fn changing(addresses: &[&str], dial: IpAddr) -> Self {
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
                return Err(if reach == Reach::PublicOnly {
                    NotPublic.into()
                } else {
                    NotPrivate.into()
                });
            }
            let addresses = found.into_iter().map(move |ip| lookup.dialled(ip));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

/// A name all of whose addresses are private.
#[derive(Debug)]
pub(super) struct NotPublic;

impl fmt::Display for NotPublic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a private address")
    }
}

impl std::error::Error for NotPublic {}

/// A name that had private addresses, and has public ones now.
#[derive(Debug)]
pub(super) struct NotPrivate;

impl fmt::Display for NotPrivate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a public address")
    }
}

impl std::error::Error for NotPrivate {}

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

/// Addresses that stand in the URL itself never pass the resolver.
pub(super) fn check_literal(url: &Url) -> Result<(), Error> {
    let ip: IpAddr = match url.host() {
        Some(Host::Ipv4(ip)) => ip.into(),
        Some(Host::Ipv6(ip)) => ip.into(),
        _ => return Ok(()),
    };
    if is_public(ip) {
        Ok(())
    } else {
        Err(refusal(url))
    }
}
