"""Send a resource as a bundle, and take one in after saying what that would do."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from tempfile import SpooledTemporaryFile
from typing import Any

from django import forms
from django.core import signing
from django.core.files.uploadedfile import UploadedFile
from django.http import FileResponse, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from unfold.widgets import UnfoldAdminFileFieldWidget

from agents.audit import note_act
from agents.bundle import TABLES, running_turns
from memory.bundle import BadBundle, Report, load, read, write
from memory.bundle.load import OUTCOMES
from memory.models import Resource

LARGEST = 512 * 1024 * 1024
IN_MEMORY = 8 * 1024 * 1024
SALT = "agents.admin.import"


class Upload(forms.Form):
    """Take a bundle."""

    file = forms.FileField(label="Bundle (.jsonl)", widget=UnfoldAdminFileFieldWidget)

    def clean_file(self) -> UploadedFile[Any]:
        """Return the file. Raises ValidationError when it is too large."""
        file: UploadedFile[Any] = self.cleaned_data["file"]
        if (file.size or 0) > LARGEST:
            raise forms.ValidationError("The file is larger than 512 MB. Use `om import` instead.")
        return file


def exported(request: HttpRequest, resource: Resource) -> FileResponse:
    """Return a resource as a file to keep, and note who took it."""
    file: Any = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - sent, then closed
    rows = 0
    for line in write(resource, TABLES):
        file.write(line.encode())
        rows += 1
    file.seek(0)
    note_act(request, "export", resource=resource, numbers={"rows": rows - 2})
    name = f"{resource.key}.jsonl"
    return FileResponse(file, as_attachment=True, filename=name, content_type="application/jsonl")


def importing(request: HttpRequest, site: Any) -> HttpResponse:
    """Show what a bundle would do as a table, then store it; the file is sent both times.

    Nothing of it lies around on the server in between: its digest, signed, says that it is the
    file that was tried.
    """
    form = Upload(request.POST or None, request.FILES or None)
    more: dict[str, Any] = {}
    if request.method == "POST" and form.is_valid():
        more = _tried(request, form.cleaned_data["file"])
    status = 422 if request.method == "POST" and not more.get("report") else 200
    context = {
        **site.each_context(request),
        "title": "Import a bundle",
        "form": form,
        "back": reverse("admin:memory_resource_changelist"),
        **more,
    }
    return TemplateResponse(request, "admin/import.html", context, status=status)


def _tried(request: HttpRequest, file: UploadedFile[Any]) -> dict[str, Any]:
    for_real = request.POST.get("tried", "")
    try:
        digest = _digest(file)
        if for_real and not _is(for_real, digest):
            return {"refusal": "This is not the file that was tried. Try it first."}
        report = load(read(_lines(file), TABLES), dry_run=not for_real, running=running_turns)
    except BadBundle as error:
        return {"refusal": str(error)}
    if report.stored:
        numbers = {outcome: report.total(outcome) for outcome in OUTCOMES}
        note_act(request, "import", resource=report.resource, numbers=numbers)
    return {"report": report, "rows": table(report), "tried": signing.dumps(digest, salt=SALT)}


def _digest(file: UploadedFile[Any]) -> str:
    found = sha256()
    for chunk in file.chunks():
        found.update(chunk)
    file.seek(0)
    return found.hexdigest()


def _is(token: str, digest: str) -> bool:
    try:
        return bool(signing.loads(token, salt=SALT, max_age=3600) == digest)
    except signing.BadSignature:
        return False


def _lines(file: UploadedFile[Any]) -> Iterator[str]:
    try:
        for line in file:
            yield line.decode()
    except UnicodeDecodeError:
        raise BadBundle("The file is not UTF-8 text.") from None


def table(report: Report) -> list[tuple[str, list[int]]]:
    """Return the rows of each table by outcome."""
    return [
        (name, [counted[outcome] for outcome in OUTCOMES])
        for name, counted in report.counts.items()
        if sum(counted.values())
    ]
