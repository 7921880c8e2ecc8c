/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of S3 and files of credentials, any bytes. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "vault/vault_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	/* Of its own size, so that each byte too many is seen. */
	char *text = malloc(len + !len);
	const char *at = text;
	struct vault_key key;
	char out[40];

	ASSERT(text);
	if (len)
		memcpy(text, data, len);
	while (vault_xml_next(&at, text + len, "Key", out, sizeof(out)))
		ASSERT(strlen(out) < sizeof(out) && at <= text + len);
	if (!vault_key_parse(text, len, &key))
		ASSERT(key.id[0] && key.secret[0]);
	free(text);
	return 0;
}
