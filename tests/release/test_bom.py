"""The bill of materials, held against CycloneDX's own schema."""

import hashlib
import json

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from release_channels import START, bundle

from tfx_edge.release.bom import bill_of_materials
from tfx_edge.release.bundle import BOM
from tfx_edge.schemas import DataSource, Provenance, Toolchain
from tfx_edge.schemas.release import MANIFEST

IMAGE = "registry.example/edge@sha256:" + "7" * 64
PROVENANCE = Provenance(data=DataSource(span=3, fingerprints={"train": "num_files:1"}), image=IMAGE)
TOOLS = Toolchain(tfx_line="1.21", tfx="1.21.0", tensorflow="2.21.0", litert="2.3.0", tfx_edge="0.1.0")


def full():
    facts = {"license": "Apache-2.0", "author": "Edge team", "source_model_digest": "5" * 64, "made_with": TOOLS}
    return bundle(1, **facts).with_provenance(PROVENANCE)


def problem(content: bytes) -> str | None:
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(content.decode())
    return None if error is None else error.data.message


def test_it_fits_cyclonedxs_schema_whatever_the_manifest_has():
    for made in (bundle(1), full(), bundle(1, name="", version="", license="MIT OR Apache-2.0"), bundle(1, license="ours")):
        assert problem(bill_of_materials(made, START)) is None
    assert problem(b'{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [{"type": "model"}]}') is not None


def test_it_names_the_model_its_card_its_makers_tools_and_what_it_was_made_of():
    made = full()
    document = json.loads(bill_of_materials(made, START))
    model = document["metadata"]["component"]
    assert model["type"] == "machine-learning-model"
    assert model["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(made.files["tflite"]).hexdigest()}]
    [card] = model["externalReferences"]
    assert (card["type"], card["url"]) == ("model-card", MANIFEST)
    assert card["hashes"][0]["content"] == hashlib.sha256(made.files[MANIFEST]).hexdigest()
    assert {part["type"] for part in document["components"]} == {"machine-learning-model", "data", "container"}
    [container] = [part for part in document["components"] if part["type"] == "container"]
    assert (container["name"], container["hashes"][0]["content"]) == ("registry.example/edge", "7" * 64)
    assert {tool["name"]: tool["version"] for tool in document["metadata"]["tools"]["components"]}["tensorflow"] == "2.21.0"
    assert model["licenses"] == [{"license": {"id": "Apache-2.0"}}]


@pytest.mark.parametrize("image", ["registry.example/edge:dev", "registry.example/edge@sha256:1", "@sha256:" + "7" * 64, "an image\n"])
def test_an_image_that_isnt_named_by_a_digest_is_told_as_it_is(image: str):
    written = bill_of_materials(bundle(1).with_provenance(Provenance(image=image)), START)
    assert problem(written) is None
    [container] = json.loads(written)["components"]
    assert container["name"] == image and "hashes" not in container


def test_the_same_bundle_and_time_give_the_same_bytes_and_it_isnt_part_of_the_bundles_identity():
    written = bill_of_materials(full(), START)
    assert written == bill_of_materials(full(), START)
    assert json.loads(written)["metadata"]["timestamp"] == "2030-01-01T00:00:00+00:00"
    assert full().with_file(BOM, b"{}").digest == full().digest
