#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Prints what an image is made of, as SPDX 2.3 in JSON: this program and every Debian package. Run in
# the image while it is built, so that it tells what is there and not what was asked for.
#
#   sbom.sh VERSION
#
# SOURCE_DATE_EPOCH: the time that it bears.
set -euo pipefail

version=${1:?VERSION}
# shellcheck source=/dev/null # of the image
release=$(. /etc/os-release && echo "$ID-$VERSION_ID")
created=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y-%m-%dT%H:%M:%SZ)
# What there is in them names the document: other packages, another name.
packages=$(dpkg-query -W -f '${db:Status-Abbrev} ${binary:Package} ${Version} ${Architecture} ${source:Package} ${source:Version}\n' |
  awk '$1 == "ii"' | LC_ALL=C sort)
hash=$({ echo "$version" && echo "$packages"; } | sha256sum | cut -c1-32)

cat <<END
{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "neutracer-$version",
  "documentNamespace": "urn:neutracer:sbom:$version:$hash",
  "creationInfo": {"created": "$created", "creators": ["Tool: neutracer-deploy-image-sbom"]},
  "documentDescribes": ["SPDXRef-neutracer"],
  "packages": [
    {
      "name": "neutracer",
      "SPDXID": "SPDXRef-neutracer",
      "versionInfo": "$version",
      "downloadLocation": "NOASSERTION",
      "filesAnalyzed": false,
      "licenseConcluded": "NOASSERTION",
      "licenseDeclared": "GPL-3.0-or-later AND Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)",
      "copyrightText": "NOASSERTION"
    }
END
relations=''
while read -r _ package its_version architecture source source_version; do
  name=${package%%:*}
  id=SPDXRef-deb-$(printf %s "$name" | tr -c 'A-Za-z0-9.-' -)
  cat <<END
    ,{
      "name": "$name",
      "SPDXID": "$id",
      "versionInfo": "$its_version",
      "supplier": "Organization: Debian",
      "sourceInfo": "built from $source $source_version",
      "downloadLocation": "NOASSERTION",
      "filesAnalyzed": false,
      "licenseConcluded": "NOASSERTION",
      "licenseDeclared": "NOASSERTION",
      "copyrightText": "NOASSERTION",
      "externalRefs": [{
        "referenceCategory": "PACKAGE-MANAGER",
        "referenceType": "purl",
        "referenceLocator": "pkg:deb/debian/${name//+/%2B}@${its_version//+/%2B}?arch=$architecture&distro=$release"
      }]
    }
END
  relations+=",
    {\"spdxElementId\": \"SPDXRef-neutracer\", \"relationshipType\": \"DEPENDS_ON\", \"relatedSpdxElement\": \"$id\"}"
done <<<"$packages"
cat <<END
  ],
  "relationships": [
    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-neutracer"}$relations
  ]
}
END
