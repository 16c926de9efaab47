"""A span a request for OpenTelemetry, made when the request is over; needs the extra `otel`.

The client's traceparent goes to the back end as it came, so that gateway and back end are children of the same span.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from trimtab.errors import HostError
from trimtab.gateway.usage import Record
from trimtab.messages import msg

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

NS = 1_000_000_000
LAST_S = 5.0  # that the end of the process waits for a collector


class Tracing:
    """Sends spans to an OTLP/HTTP collector, in a thread of the library."""

    def __init__(self, endpoint: str) -> None:
        """HostError without the packages of the extra."""
        self.endpoint = endpoint
        self._provider = _provider(endpoint)
        self._tracer = self._provider.get_tracer("trimtab.gateway")

    def add(self, record: Record) -> None:
        """A request has ended now."""
        from opentelemetry.trace import SpanKind, Status, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        parent = TraceContextTextMapPropagator().extract({"traceparent": record.trace}) if record.trace else None
        ended = time.time_ns()
        span = self._tracer.start_span(
            f"POST {record.path}", parent, SpanKind.SERVER, start_time=ended - int(record.seconds * NS),
            attributes={
                "http.request.method": "POST", "http.response.status_code": record.status, "url.path": record.path,
                "gen_ai.request.model": record.model, "gen_ai.usage.input_tokens": record.prompt_tokens,
                "gen_ai.usage.output_tokens": record.completion_tokens, "trimtab.back_end": record.back_end,
                "trimtab.key": record.key, "trimtab.request_id": record.id,
                "trimtab.first_byte_s": record.first_byte_s,
            },
        )  # fmt: skip
        if record.status >= 500:
            span.set_status(Status(StatusCode.ERROR))
        span.end(ended)

    def close(self, wait_s: float = 0.0) -> None:
        """Send what is left, in a thread: a collector that hangs keeps nobody for longer than `wait_s`."""
        ending = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
        ending.start()
        ending.join(wait_s)


def _provider(endpoint: str) -> TracerProvider:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise HostError(
            msg("traces need OpenTelemetry, which is not installed ({missing})", missing=error.name),
            hint=msg("pip install 'trimtab[otel]', or leave otlp out of the configuration."),
        ) from error
    provider = TracerProvider(resource=Resource.create({"service.name": "trimtab-gateway"}))
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=5)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1000))
    return provider
