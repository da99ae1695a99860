mod choosing;
mod classifying;
mod greetings;
mod reading;
mod set;
