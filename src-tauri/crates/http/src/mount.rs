//! Mounts handlers at the paths and methods that `#[utoipa::path]` names, with their reach.
//!
//! Builds for tests also collect the description of each route, and a test compares the whole with `docs/openapi.json`. What is
//! shipped serves that file: it has no descriptions (`src-tauri/crates/openapi`).

use crate::reach::Reaches;
use axum::Router;
use utoipa::openapi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

/// As [`utoipa_axum::routes`], with each handler's reach; only builds for tests collect the description.
#[macro_export]
macro_rules! routes {
    (@mount $paths:ident $handlers:ident $reaches:ident [$($module:tt)*] $name:ident) => {
        utoipa_axum::paste! {
            let path = <$($module)* [<__path_ $name>] as utoipa::Path>::path();
            let methods = <$($module)* [<__path_ $name>] as utoipa::Path>::methods();
            $reaches.add::<$($module)* [<__path_ $name>]>(path.clone());
        }
        for method in &methods {
            let method = utoipa_axum::PathItemExt::to_method_filter(method);
            $handlers = $handlers.on(method, $($module)* $name);
        }
        $paths.add_path_operation(&path, methods, utoipa::openapi::path::Operation::new());
    };
    (@mount $paths:ident $handlers:ident $reaches:ident [$($module:tt)*] $first:ident :: $($rest:tt)+) => {
        $crate::routes!(@mount $paths $handlers $reaches [$($module)* $first ::] $($rest)+)
    };
    ($($($part:ident)::+),+) => {{
        let mut paths = utoipa::openapi::path::Paths::new();
        let mut handlers = axum::routing::MethodRouter::new();
        let mut reaches = $crate::reach::Reaches::default();
        $($crate::routes!(@mount paths handlers reaches [] $($part)::+);)+
        let mounted = (Vec::new(), paths, handlers);
        ($crate::described!(mounted, $($($part)::+),+), reaches)
    }};
}
#[cfg(openapi)]
#[doc(hidden)]
#[macro_export]
macro_rules! described {
    ($mounted:ident, $($handler:path),+) => {
        $crate::mount::describe($mounted, || utoipa_axum::routes!($($handler),+))
    };
}
#[cfg(not(openapi))]
#[doc(hidden)]
#[macro_export]
macro_rules! described {
    ($mounted:ident, $($handler:path),+) => {
        $mounted
    };
}

/// Adds the description to mounted handlers.
#[cfg(openapi)]
pub fn describe<S>(
    mounted: UtoipaMethodRouter<S>,
    described: impl FnOnce() -> UtoipaMethodRouter<S>,
) -> UtoipaMethodRouter<S> {
    let (schemas, paths, _) = described();
    (schemas, paths, mounted.2)
}

/// Routes, and the reach of each.
#[derive(Clone)]
pub struct Routes<S = ()> {
    router: OpenApiRouter<S>,
    reaches: Reaches,
}

impl<S> std::fmt::Debug for Routes<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.reaches.fmt(f)
    }
}

impl<S: Clone + Send + Sync + 'static> Default for Routes<S> {
    fn default() -> Self {
        Self {
            router: OpenApiRouter::default(),
            reaches: Reaches::default(),
        }
    }
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// No routes, with the parts of the description that `D` names and no route has.
    #[cfg(openapi)]
    pub fn described<D: utoipa::OpenApi>() -> Self {
        Self {
            router: OpenApiRouter::with_openapi(D::openapi()),
            ..Self::default()
        }
    }

    /// No routes.
    #[cfg(not(openapi))]
    pub fn described<D>() -> Self {
        Self::default()
    }

    /// Adds what [`routes!`](crate::routes) has made of handlers.
    #[must_use]
    pub fn routes(mut self, (mounted, reaches): (UtoipaMethodRouter<S>, Reaches)) -> Self {
        self.reaches.merge(reaches);
        self.map(|router| router.routes(mounted))
    }

    #[must_use]
    pub fn merge(mut self, others: Self) -> Self {
        self.reaches.merge(others.reaches);
        self.map(|router| router.merge(others.router))
    }

    /// Changes the routes but for their reach, such as with layers.
    pub fn map<S2>(self, change: impl FnOnce(OpenApiRouter<S>) -> OpenApiRouter<S2>) -> Routes<S2> {
        Routes {
            router: change(self.router),
            reaches: self.reaches,
        }
    }

    pub fn with_state<S2>(self, state: S) -> Routes<S2> {
        self.map(|router| router.with_state(state))
    }

    /// Returns the routes, their reach, and their description.
    pub fn into_parts(self) -> (Router<S>, Reaches, openapi::OpenApi) {
        let (router, api) = self.router.split_for_parts();
        (router, self.reaches, api)
    }
}
