//! Mounts handlers at the paths and methods that `#[utoipa::path]` names.
//!
//! Tests also collect the description of each route and compare the whole with `docs/openapi.json`. The program
//! serves that file: it has no descriptions (`src-tauri/crates/openapi`).

use utoipa_axum::router::OpenApiRouter;
#[cfg(openapi)]
use utoipa_axum::router::UtoipaMethodRouter;

/// As [`utoipa_axum::routes`], but only tests collect the description.
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
        $crate::http::routes::routes!(@mount $paths $handlers [$($module)* $first ::] $($rest)+)
    };
    ($($($part:ident)::+),+) => {{
        let mut paths = utoipa::openapi::path::Paths::new();
        let mut handlers = axum::routing::MethodRouter::new();
        $($crate::http::routes::routes!(@mount paths handlers [] $($part)::+);)+
        let mounted = (Vec::new(), paths, handlers);
        $crate::http::routes::described!(mounted, $($($part)::+),+)
    }};
}
pub(crate) use routes;

#[cfg(openapi)]
macro_rules! described {
    ($mounted:ident, $($handler:path),+) => {
        $crate::http::routes::describe($mounted, || utoipa_axum::routes!($($handler),+))
    };
}
#[cfg(not(openapi))]
macro_rules! described {
    ($mounted:ident, $($handler:path),+) => {
        $mounted
    };
}
pub(crate) use described;

/// Describes mounted handlers in tests; in the programs, returns them as they are.
#[cfg(openapi)]
pub(crate) fn describe<S>(
    mounted: UtoipaMethodRouter<S>,
    described: impl FnOnce() -> UtoipaMethodRouter<S>,
) -> UtoipaMethodRouter<S> {
    if cfg!(test) {
        let (schemas, paths, _) = described();
        (schemas, paths, mounted.2)
    } else {
        mounted
    }
}

/// Returns an empty router. In tests, it has the parts of the description that `D` names and no route has.
#[cfg(openapi)]
pub(crate) fn described_router<D: utoipa::OpenApi, S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    if cfg!(test) {
        OpenApiRouter::with_openapi(D::openapi())
    } else {
        OpenApiRouter::default()
    }
}

/// Returns an empty router.
#[cfg(not(openapi))]
#[expect(
    clippy::extra_unused_type_parameters,
    reason = "it is called as in tests, where `D` counts"
)]
pub(crate) fn described_router<D, S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    OpenApiRouter::default()
}
