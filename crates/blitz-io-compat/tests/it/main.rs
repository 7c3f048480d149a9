//! Each bridge in each direction, against a scripted stream.

#![forbid(unsafe_code)]

mod script;
mod outside;
mod streams;
mod buffers;
mod seeks;
mod hyper;
mod stream_traits;
