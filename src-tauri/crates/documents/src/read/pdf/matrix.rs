//! Where a page's content stands on paper.

use hayro_syntax::object::{Rect, Stream};

/// `[a b c d e f]` (8.3.4).
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix(pub(super) [f64; 6]);

impl Matrix {
    pub(super) const SAME: Self = Self([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    pub(super) fn moved(x: f64, y: f64) -> Self {
        Self([1.0, 0.0, 0.0, 1.0, x, y])
    }

    /// From a form's own bounds, as its matrix turns them, to a rectangle of the page (12.5.5).
    pub(super) fn fitting(form: &Stream<'_>, rectangle: Rect) -> Option<Self> {
        let bounds = form.dict().get::<Rect>("BBox")?;
        let matrix = Self::of_form(form);
        let corners = [
            (bounds.x0, bounds.y0),
            (bounds.x1, bounds.y0),
            (bounds.x0, bounds.y1),
            (bounds.x1, bounds.y1),
        ];
        let places = corners.map(|(x, y)| Self::moved(x, y).then(matrix).place());
        let range = |of: fn(&(f64, f64)) -> f64| {
            let least = places.iter().map(of).fold(f64::INFINITY, f64::min);
            (
                least,
                places.iter().map(of).fold(f64::NEG_INFINITY, f64::max),
            )
        };
        let ((x0, x1), (y0, y1)) = (range(|place| place.0), range(|place| place.1));
        let scale = |wanted: f64, own: f64| if own > 0.0 { wanted / own } else { 1.0 };
        let (x, y) = (
            scale(rectangle.x1 - rectangle.x0, x1 - x0),
            scale(rectangle.y1 - rectangle.y0, y1 - y0),
        );
        Some(Self([
            x,
            0.0,
            0.0,
            y,
            rectangle.x0 - x0 * x,
            rectangle.y0 - y0 * y,
        ]))
    }

    pub(super) fn of_form(form: &Stream<'_>) -> Self {
        form.dict().get("Matrix").map_or(Self::SAME, Self)
    }

    /// `self`, and then `other`.
    pub(super) fn then(self, other: Self) -> Self {
        let ([a, b, c, d, e, f], [oa, ob, oc, od, oe, of]) = (self.0, other.0);
        Self([
            a * oa + b * oc,
            a * ob + b * od,
            c * oa + d * oc,
            c * ob + d * od,
            e * oa + f * oc + oe,
            e * ob + f * od + of,
        ])
    }

    pub(super) fn place(self) -> (f64, f64) {
        (self.0[4], self.0[5])
    }
}
