"""AdmissionReviews as an API server sends them, and the answers it takes; bytes in, bytes out.

Used by the server; holds no state and does no input or output.
"""

import base64
import json
from typing import Any, Final

from pumice.webhooks.admission_chain import KINDS
from pumice.webhooks.cpu_budget import REVIEW_S, OverBudgetError, cpu_budget
from pumice.webhooks.fields import go_json
from pumice.webhooks.registry import Service
from pumice.webhooks.review import Answer, Existing, Options, Request, cut

API_VERSION: Final = "admission.k8s.io/v1"


def answer_review(body: bytes, service: Service, existing: Existing, options: Options) -> bytes:
    """Answer one review, whatever it contains."""
    try:
        review = json.loads(body)
    except (ValueError, RecursionError) as error:
        problem = f"couldn't get version/kind; json parse error: {error}"
        return _written("", Answer(message=problem))
    request = review.get("request") if isinstance(review, dict) else None
    if not isinstance(request, dict):
        problem = f"expected an AdmissionReview of {API_VERSION} with a request"
        return _written("", Answer(message=problem))
    uid = request.get("uid")
    return _written(
        uid if isinstance(uid, str) else "", _answer(request, service, existing, options)
    )


def _answer(
    request: dict[str, Any], service: Service, existing: Existing, options: Options
) -> Answer:
    kind = KINDS[service.kind]
    wanted = {"group": kind.group, "version": kind.version, "resource": kind.plural}
    given = request.get("resource")
    if not isinstance(given, dict) or {key: given.get(key) for key in wanted} != wanted:
        named = f"{kind.group}/{kind.version}, Resource={kind.plural}"
        return Answer(message=f"expect resource to be {named}")
    texts = {key: request.get(key) for key in ("operation", "namespace", "name")}
    strings = {key: value if isinstance(value, str) else "" for key, value in texts.items()}
    asked = Request(
        operation=strings["operation"],
        object=request.get("object"),
        old=request.get("oldObject"),
        namespace=strings["namespace"],
        name=strings["name"],
    )
    try:
        with cpu_budget(REVIEW_S):
            return service.answer(asked, existing, options)
    except RecursionError:
        return Answer(message="exceeded max depth")
    except OverBudgetError:
        limit = f"the {REVIEW_S:g} s of CPU time that a review may take"
        return Answer(message=f"the object is too large: checking it takes more than {limit}")


def _written(uid: str, answer: Answer) -> bytes:
    response: dict[str, Any] = {"uid": uid, "allowed": answer.allowed}
    if not answer.allowed:
        response["status"] = {"metadata": {}, "message": cut(answer.message)}
    if answer.patch:
        text = go_json(answer.patch, sort=False)
        response["patch"] = base64.b64encode(text.encode(errors="replace")).decode()
        response["patchType"] = "JSONPatch"
    review = {"kind": "AdmissionReview", "apiVersion": API_VERSION, "response": response}
    return json.dumps(review).encode()
