/* SPDX-License-Identifier: Apache-2.0 */
/* The little of XML that answers of S3 need: elements with plain text in them.
 * Names of ours have no character that XML writes otherwise. */
#include <string.h>

#include "vault_priv.h"

bool vault_xml_next(const char **at, const char *end, const char *name,
		    char *out, size_t room)
{
	size_t name_len = strlen(name);

	while (*at < end) {
		const char *open = memchr(*at, '<', (size_t)(end - *at));
		const char *text, *close;
		size_t len;

		if (!open || (size_t)(end - open) < name_len + 2)
			break;
		*at = open + 1;
		if (memcmp(open + 1, name, name_len) != 0 ||
		    open[1 + name_len] != '>')
			continue;
		text = open + name_len + 2;
		close = memchr(text, '<', (size_t)(end - text));
		if (!close)
			break;
		*at = close;
		len = (size_t)(close - text);
		if (len >= room || memchr(text, '&', len) ||
		    memchr(text, 0, len))
			continue;
		memcpy(out, text, len);
		out[len] = 0;
		return true;
	}
	*at = end;
	return false;
}
