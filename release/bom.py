"""The bill of materials of a bundle, in CycloneDX: what the model is, what it was made of, and where its card is.

CycloneDX 1.6 (ECMA-424). Its model card isn't implemented by cyclonedx-python-lib; the manifest, which says all of it and more, is
referred to as one.
"""

import hashlib
import re
import uuid
from datetime import datetime

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.contact import OrganizationalContact
from cyclonedx.model.license import DisjunctiveLicense, LicenseExpression
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.spdx import is_expression, is_supported_id

from tfx_edge.release.bundle import Bundle
from tfx_edge.schemas.export import Manifest
from tfx_edge.schemas.lineage import Toolchain
from tfx_edge.schemas.provenance import Provenance
from tfx_edge.schemas.release import MANIFEST, MODEL


def bill_of_materials(bundle: Bundle, time: datetime) -> bytes:
    """Writes the bill of materials of a bundle.

    Args:
        bundle: with the manifest that is published.
        time: when it is, UTC.

    Returns:
        CycloneDX 1.6 as JSON. The same bundle and time give the same bytes; the serial number is a hash of the bundle.
    """
    manifest = bundle.manifest
    bom = Bom(
        serial_number=uuid.uuid5(uuid.NAMESPACE_OID, f"tfx-edge:{bundle.digest}"),
        metadata=BomMetaData(timestamp=time, component=_model(bundle), tools=ToolRepository(components=_software(manifest.made_with))),
    )
    materials = _materials(manifest)
    bom.components.update(materials)
    bom.register_dependency(bom.metadata.component, materials)  # type: ignore[arg-type]  # set above
    written: str = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)
    return f"{written}\n".encode()


def _model(bundle: Bundle) -> Component:
    manifest = bundle.manifest
    card = ExternalReference(
        type=ExternalReferenceType.MODEL_CARD,
        url=XsUri(MANIFEST),
        comment="signature, quantization, operators, minimum runtime, provenance",
        hashes=[_sha256(hashlib.sha256(bundle.files[MANIFEST]).hexdigest())],
    )
    return Component(
        type=ComponentType.MACHINE_LEARNING_MODEL,
        name=manifest.name or MODEL,
        version=manifest.version or bundle.digest[:12],
        description=manifest.description,
        bom_ref=f"bundle:{bundle.digest}",
        authors=[OrganizationalContact(name=manifest.author)] if manifest.author else None,
        licenses=[_license(manifest.license)] if manifest.license else None,
        hashes=[_sha256(manifest.digest)],
        external_references=[card],
        properties=_properties(scheme=manifest.scheme, size_bytes=manifest.size_bytes, minimum_runtime=manifest.minimum_runtime),
    )


def _materials(manifest: Manifest) -> list[Component]:
    """What the model was made of: the float model, the data, the container image."""
    provenance = manifest.provenance or Provenance()
    found = []
    if manifest.source_model_digest is not None:
        found.append(
            Component(
                type=ComponentType.MACHINE_LEARNING_MODEL,
                name="float model",
                bom_ref=f"float-model:{manifest.source_model_digest}",
                properties=_properties(folder_sha256=manifest.source_model_digest),
            )
        )
    if provenance.data is not None:
        fingerprints = {f"fingerprint.{split}": value for split, value in sorted(provenance.data.fingerprints.items())}
        facts = _properties(span=provenance.data.span, version=provenance.data.version, **fingerprints)
        found.append(Component(type=ComponentType.DATA, name="examples", bom_ref="data:examples", properties=facts))
    if provenance.image is not None:
        found.append(_container(provenance.image))
    return found


def _container(image: str) -> Component:
    """An image as an environment variable names it, which may be anything."""
    named = re.fullmatch(r"(.+)@sha256:([0-9a-f]{64})", image)
    name, hashes = (named[1], [_sha256(named[2])]) if named is not None else (image, None)
    return Component(type=ComponentType.CONTAINER, name=name, bom_ref=f"image:{image}", hashes=hashes)


def _software(made_with: Toolchain | None) -> list[Component]:
    if made_with is None:
        return []
    versions = {
        "tfx": made_with.tfx,
        "tensorflow": made_with.tensorflow,
        "ai-edge-litert": made_with.litert,
        "tfx-edge": made_with.tfx_edge,
    }
    return [Component(type=ComponentType.LIBRARY, name=name, version=version) for name, version in versions.items()]


def _license(text: str) -> DisjunctiveLicense | LicenseExpression:
    if is_supported_id(text):
        return DisjunctiveLicense(id=text)
    return LicenseExpression(value=text) if is_expression(text) else DisjunctiveLicense(name=text)


def _properties(**facts: object) -> list[Property]:
    return [Property(name=f"tfx-edge:{name}", value=str(value)) for name, value in facts.items() if value is not None]


def _sha256(digest: str) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=digest)
