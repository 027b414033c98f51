//! A call to a service.
//!
//! Nearly every service is ready at any time. Then it gets the request at once, and not when hyper first looks at the
//! answer: a denied request is gone before hyper wants its buffer for the next one.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use pin_project_lite::pin_project;
use tower_service::Service;

pin_project! {
    /// The answer of a service that may not have been ready.
    #[project = CalledView]
    pub(crate) enum Called<S, R>
    where
        S: Service<R>,
    {
        Answering { #[pin] answer: S::Future },
        Unready { service: S, request: Option<R> },
        Failed { error: Option<S::Error> },
    }
}

impl<S: Service<R>, R> Called<S, R> {
    pub(crate) fn new(mut service: S, request: R) -> Self {
        match service.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => Self::Answering { answer: service.call(request) },
            Poll::Ready(Err(error)) => Self::Failed { error: Some(error) },
            Poll::Pending => Self::Unready { service, request: Some(request) },
        }
    }
}

impl<S: Service<R>, R> Future for Called<S, R> {
    type Output = Result<S::Response, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let next = match self.as_mut().project() {
                CalledView::Answering { answer } => return answer.poll(cx),
                CalledView::Failed { error } => {
                    return error.take().map_or(Poll::Pending, |error| Poll::Ready(Err(error)));
                }
                CalledView::Unready { service, request } => {
                    ready!(service.poll_ready(cx))?;
                    let Some(request) = request.take() else { return Poll::Pending };
                    Self::Answering { answer: service.call(request) }
                }
            };
            self.set(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Ready, ready};
    use std::pin::pin;

    use super::*;

    /// Ready after it was asked so many times.
    struct Slow(u32);

    impl Service<u32> for Slow {
        type Response = u32;
        type Error = &'static str;
        type Future = Ready<Result<u32, &'static str>>;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
            match self.0.checked_sub(1) {
                None => Poll::Ready(Ok(())),
                Some(left) => {
                    self.0 = left;
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
            }
        }

        fn call(&mut self, request: u32) -> Self::Future {
            ready(Ok(request + 1))
        }
    }

    /// Never ready.
    struct Broken;

    impl Service<u32> for Broken {
        type Response = u32;
        type Error = &'static str;
        type Future = Ready<Result<u32, &'static str>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
            Poll::Ready(Err("broken"))
        }

        fn call(&mut self, _: u32) -> Self::Future {
            ready(Err("called all the same"))
        }
    }

    #[test]
    fn a_service_is_waited_for_and_called_once_it_is_ready() {
        let mut cx = Context::from_waker(Waker::noop());
        for slowness in 0..4 {
            let mut called = pin!(Called::new(Slow(slowness), 7));
            let pending = (0..10).take_while(|_| called.as_mut().poll(&mut cx) != Poll::Ready(Ok(8))).count();
            assert_eq!(pending, slowness.saturating_sub(1) as usize, "the first look was taken when it was made");
        }
    }

    #[test]
    fn a_service_that_fails_is_not_called() {
        let mut called = pin!(Called::new(Broken, 7));
        assert_eq!(called.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(Err("broken")));
    }
}
