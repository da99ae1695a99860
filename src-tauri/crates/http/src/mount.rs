//! Mounts handlers at the paths and methods that `#[utoipa::path]` names.
//!
//! Builds for tests also collect the description of each route, and a test compares the whole with `docs/openapi.json`. What is
//! shipped serves that file: it has no descriptions (`src-tauri/crates/openapi`).

use utoipa_axum::router::OpenApiRouter;
#[cfg(openapi)]
use utoipa_axum::router::UtoipaMethodRouter;

/// As [`utoipa_axum::routes`], but only builds for tests collect the description.
#[macro_export]
macro_rules! routes {
    (@mount $paths:ident $handlers:ident [$($module:tt)*] $name:ident) => {
        utoipa_axum::paste! {
            let path = <$($module)* [<__path_ $name>] as utoipa::Path>::path();
            let methods = <$($module)* [<__path_ $name>] as utoipa::Path>::methods();
        }
        for method in &methods {
            let method = utoipa_axum::PathItemExt::to_method_filter(method);
            $handlers = $handlers.on(method, $($module)* $name);
        }
        $paths.add_path_operation(&path, methods, utoipa::openapi::path::Operation::new());
    };
    (@mount $paths:ident $handlers:ident [$($module:tt)*] $first:ident :: $($rest:tt)+) => {
        $crate::routes!(@mount $paths $handlers [$($module)* $first ::] $($rest)+)
    };
    ($($($part:ident)::+),+) => {{
        let mut paths = utoipa::openapi::path::Paths::new();
        let mut handlers = axum::routing::MethodRouter::new();
        $($crate::routes!(@mount paths handlers [] $($part)::+);)+
        let mounted = (Vec::new(), paths, handlers);
        $crate::described!(mounted, $($($part)::+),+)
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

/// Returns an empty router with the parts of the description that `D` names and no route has.
#[cfg(openapi)]
#[must_use]
pub fn described_router<D: utoipa::OpenApi, S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    OpenApiRouter::with_openapi(D::openapi())
}

/// Returns an empty router.
#[cfg(not(openapi))]
#[must_use]
pub fn described_router<D, S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    OpenApiRouter::default()
}
