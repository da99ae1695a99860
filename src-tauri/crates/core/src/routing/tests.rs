mod choosing;
mod classifying;
mod reading;
mod set;
