//! Mounts handlers at the paths and methods that `#[utoipa::path]` names.
//!
//! Tests also collect the description of each route, which `docs/openapi.json` is written from. The program serves that file, so it
//! does not collect it again at each start.

use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

#[cfg(test)]
pub(crate) use utoipa_axum::routes;

/// As [`utoipa_axum::routes`], with neither the schemas nor the content of the operations.
#[cfg(not(test))]
macro_rules! routes {
    (@route $paths:ident $handlers:ident [$($module:tt)*] $name:ident) => {
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
    (@route $paths:ident $handlers:ident [$($module:tt)*] $first:ident :: $($rest:tt)+) => {
        $crate::http::routes::routes!(@route $paths $handlers [$($module)* $first ::] $($rest)+)
    };
    ($($($part:ident)::+),+) => {{
        let mut paths = utoipa::openapi::path::Paths::new();
        let mut handlers = axum::routing::MethodRouter::new();
        $($crate::http::routes::routes!(@route paths handlers [] $($part)::+);)+
        (Vec::new(), paths, handlers)
    }};
}
#[cfg(not(test))]
pub(crate) use routes;

/// A router with what `D` describes beside the routes, which only tests collect.
pub(crate) fn described_router<D: OpenApi, S>() -> OpenApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    if cfg!(test) {
        OpenApiRouter::with_openapi(D::openapi())
    } else {
        OpenApiRouter::default()
    }
}
