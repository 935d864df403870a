"""The HTTP interface."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response
from starlette.types import ASGIApp

from maxdisc.numerics.installation import pip_line
from maxdisc.serve import answers
from maxdisc.serve.answer_schemas import (
    AnyAnswer,
    DensityAnswer,
    ExplainAnswer,
    PredictAnswer,
    RankingAnswer,
    StateAnswer,
    told,
)
from maxdisc.serve.bodies import ExplainBody, PredictBody, parsed, schema_of
from maxdisc.serve.csv_rows import predicted_csv
from maxdisc.serve.guard import FACTS, Guard
from maxdisc.serve.limits import Limits
from maxdisc.serve.metrics import MEDIA_TYPE, Tally
from maxdisc.serve.refusals import RefusedError, answered, busy, one_line
from maxdisc.serve.served_model import ServedModel
from maxdisc.serve.service import Service

STATIC = Path(__file__).parent / "static"
#: Bodies of no more bytes are looked at to see whether they can be answered at once, in a millisecond or two.
SMALL = 2048
#: How a request with a body may be refused.
_POSTED = (400, 401, 404, 408, 413, 415, 422, 503)
_NAME = "Which model; by default the first."
ModelName = Annotated[str | None, Query(alias="model", max_length=200, description=_NAME)]


def create_app(
    paths: Mapping[str, Path],
    limits: Limits | None = None,
    token: str | None = None,
    reload_seconds: float = 1.0,
    docs: bool = False,
) -> ASGIApp:
    """Return the service as an ASGI application, for any ASGI server.

    Parameters
    ----------
    paths : mapping of str to Path
        Model files by name. They are loaded when the server starts.
    limits : Limits, optional
        Bounds on requests.
    token : str, optional
        The token that requests must send.
    reload_seconds : float, default=1.0
        Seconds between checks for replaced model files; 0 for none.
    docs : bool, default=False
        Whether ``/docs`` shows the API in Swagger UI.

    Returns
    -------
    ASGI application
        The application.

    Examples
    --------
    >>> from pathlib import Path
    >>> from maxdisc.serve import Limits, create_app
    >>> app = create_app({"topics": Path("topics.maxdisc")}, Limits(batch=100))
    >>> callable(app)
    True
    """
    return app_of(Service(paths, limits, token, reload_seconds=reload_seconds, docs=docs))


def app_of(service: Service) -> ASGIApp:
    """Return the application of a service."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with service.running():
            yield

    app = FastAPI(
        title="maxdisc",
        version=version("maxdisc"),
        description="Classes of documents and rows, and why.",
        docs_url=None,  # FastAPI's page would load scripts from another host; --docs has them here
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    _add_states(app, service)
    _add_model(app, service)
    _add_predictions(app, service)
    if service.docs:
        _add_docs(app)
    _add_page(app)
    _add_refusals(app)
    return Guard(app, service)


def _asked(request: Request, service: Service, name: str | None) -> ServedModel:
    model = service.shelf.model(name)
    request.scope[FACTS]["model"] = model.name
    return model


def _add_states(app: FastAPI, service: Service) -> None:
    @app.get("/healthz", tags=["state"], responses=told(StateAnswer))
    async def healthz() -> Response:
        """Return whether the process is alive."""
        return answered({"status": "ok"})

    @app.get("/readyz", tags=["state"], responses=told(StateAnswer, 503))
    async def readyz() -> Response:
        """Return whether requests are accepted; 503 while models are loaded and during shutdown."""
        if not service.ready:
            raise busy("the service is ending." if service.closing else "the models are being loaded.")
        return answered({"status": "ready", "models": service.shelf.names})

    @app.get(
        "/metrics", tags=["state"], response_class=Response, responses=told(None, 401, media="text/plain")
    )
    async def metrics() -> Response:
        """Return counts, latencies and input statistics, for Prometheus."""
        return Response(service.metrics.text(), media_type=MEDIA_TYPE)


def _add_model(app: FastAPI, service: Service) -> None:
    @app.get("/models", tags=["model"], responses=told(AnyAnswer, 401))
    async def models() -> Response:
        """Return the served models."""
        first = service.shelf.names[0]
        return answered({"models": [answers.listed(m, m.name == first) for m in service.shelf.models]})

    @app.get("/model", tags=["model"], responses=told(AnyAnswer, 401, 404, 422, 503))
    async def model(request: Request, model: ModelName = None) -> Response:
        """Return classes, columns, settings and accuracy by number of features of a model."""
        served = _asked(request, service, model)
        return await service.work.do(lambda: answered(answers.described(served, service.limits)))

    @app.get("/ranking", tags=["model"], responses=told(RankingAnswer, 401, 404, 422, 503))
    async def ranking(
        request: Request,
        model: ModelName = None,
        search: Annotated[str, Query(max_length=200, description="What names have in them.")] = "",
        label: Annotated[str | None, Query(alias="class", description="What they speak for most.")] = None,
        offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    ) -> Response:
        """Return features, best first."""
        served = _asked(request, service, model)
        # Of very many features it takes seconds, once, which no other request should wait for.
        await service.work.once(served.file["checksum"], lambda: answers.ranking_of(served))
        return await service.work.do(
            lambda: answered(answers.ranked(served, search, label or None, offset, limit))
        )

    @app.get("/density", tags=["model"], responses=told(DensityAnswer, 401, 404, 422, 503))
    async def density(
        request: Request,
        feature: Annotated[str, Query(description="The name of a feature.")],
        model: ModelName = None,
    ) -> Response:
        """Return the densities of a feature in each class."""
        served = _asked(request, service, model)
        return await service.work.do(lambda: answered(answers.density(served, feature)))


def _add_predictions(app: FastAPI, service: Service) -> None:
    limits = service.limits
    examples: list[Any] = [
        {"texts": ["The launch was delayed"]},
        {"rows": [{"age": 61, "ward": None}], "top": 1},
    ]

    @app.post(
        "/predict",
        tags=["use"],
        responses=told(PredictAnswer, *_POSTED),
        openapi_extra={"requestBody": schema_of(PredictBody, examples)},
    )
    async def predict(request: Request, model: ModelName = None) -> Response:
        """Predict the classes of documents or rows, with probabilities."""
        served = _asked(request, service, model)
        body = await service.bodies.read(request, "application/json")

        def work(asked: PredictBody | None = None) -> tuple[Response, Tally]:
            said, tally = answers.predicted(served, asked or parsed(PredictBody, body), limits)
            return answered(said), tally

        small = parsed(PredictBody, body) if len(body) <= SMALL else None
        if small is not None and answers.takes_little(served, small):
            # A thread would take as long to begin: with one lock for all, nobody waits less for it.
            answer, tally = work(small)
        else:
            answer, tally = await service.work.do(work, small)
        _count(request, service, served, tally)
        return answer

    more: list[Any] = [{"text": "The launch was delayed", "n": 5}]

    @app.post(
        "/explain",
        tags=["use"],
        responses=told(ExplainAnswer, *_POSTED),
        openapi_extra={"requestBody": schema_of(ExplainBody, more)},
    )
    async def explain(request: Request, model: ModelName = None) -> Response:
        """Explain one class of a document or row against another, as a sum of log-odds."""
        served = _asked(request, service, model)
        body = await service.bodies.read(request, "application/json")
        request.scope[FACTS]["rows"] = 1
        return await service.work.do(
            lambda: answered(answers.explained(served, parsed(ExplainBody, body), limits))
        )

    rows = {"required": True, "content": {"text/csv": {"schema": {"type": "string"}}}}

    @app.post(
        "/predict.csv",
        tags=["use"],
        response_class=Response,
        responses=told(None, *_POSTED, media="text/csv"),
        openapi_extra={"requestBody": rows},
    )
    async def predict_csv(request: Request, model: ModelName = None) -> Response:
        """Predict the rows of a CSV file; return it with the predictions."""
        served = _asked(request, service, model)
        body = await service.bodies.read(request, "text/csv")
        content, tally = await service.work.do(predicted_csv, served, body, limits)
        _count(request, service, served, tally)
        return Response(content, media_type="text/csv; charset=utf-8")


def _count(request: Request, service: Service, model: ServedModel, tally: Tally) -> None:
    request.scope[FACTS]["rows"] = tally.rows
    service.metrics.add_predictions(model.name, tally)


def _add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        index = STATIC / "index.html"
        if not await asyncio.to_thread(index.exists):
            raise RefusedError(404, "this service has no page; /openapi.json describes its paths.")
        return FileResponse(index)

    app.mount("/static", StaticFiles(directory=STATIC, check_dir=False), name="static")


def _add_docs(app: FastAPI) -> None:
    """Serve Swagger UI with the files that a package ships; its Python code is not imported."""
    found = find_spec("fastapi_swagger")
    if found is None or not found.submodule_search_locations:
        raise ImportError(
            f"the page of the API needs fastapi-swagger, which is not installed: {pip_line('serve')}",
            name="fastapi_swagger",
        )
    assets = Path(found.submodule_search_locations[0]) / "resources"

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return FileResponse(STATIC / "docs.html")

    app.mount("/static/swagger", StaticFiles(directory=assets), name="swagger")


def _add_refusals(app: FastAPI) -> None:
    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, RefusedError)
        return error.answer()

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        told = {
            404: "unknown path: /openapi.json lists the paths.",
            405: f"{request.method[:20]} is not allowed for this path: /openapi.json lists the methods.",
        }
        return RefusedError(
            error.status_code, told.get(error.status_code, one_line(str(error.detail))), error.headers
        ).answer()

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        told = f"{first['loc'][-1]}: {first['msg'][:1].lower()}{first['msg'][1:]}."
        return RefusedError(422, told).answer()

    app.add_exception_handler(RefusedError, refused)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
