/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the beginning of a request. Where its head ends does not depend
 * on what follows; nothing outside it is touched; and what was taken lies in
 * it, and is clean. What follows is tried as chunks.
 */
#include <stdlib.h>
#include <string.h>

#include "control/chunk_priv.h"
#include "control/head_priv.h"
#include "fuzz.h"

static void check_word(const char *word, const char *text, size_t bytes)
{
	ASSERT(word >= text && word + strlen(word) < text + bytes);
	for (; *word; word++)
		ASSERT(*word != '\n' && *word != '\x01');
}

/* What follows, as chunks: whole or byte by byte, it is the same. */
static void unchunk(const char *text, size_t bytes)
{
	struct chunks all = {0}, some = {0};
	size_t at[2] = {0}, sum[2] = {0};
	bool is_wrong[2] = {false};

	for (unsigned i = 0; i < 2; i++) {
		struct chunks *c = i ? &some : &all;

		while (at[i] < bytes && c->at != CHUNK_AT_END && !is_wrong[i]) {
			const char *data;
			size_t data_bytes;
			ssize_t n = chunks_take(c, text + at[i],
						i ? 1 : bytes - at[i], &data,
						&data_bytes);

			is_wrong[i] = n < 0;
			if (n < 0)
				break;
			ASSERT(n > 0 && (size_t)n <= bytes - at[i]);
			ASSERT(data_bytes <= (size_t)n);
			ASSERT(data >= text &&
			       data + data_bytes <= text + bytes);
			at[i] += (size_t)n;
			sum[i] += data_bytes;
		}
	}
	ASSERT(at[0] == at[1] && sum[0] == sum[1]);
	ASSERT(all.at == some.at && is_wrong[0] == is_wrong[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	size_t bytes = head_length((const char *)data, len_bytes);
	struct head h;
	char *text;

	if (!bytes)
		return 0;
	ASSERT(bytes <= len_bytes);
	ASSERT(head_length((const char *)data, bytes) == bytes);
	ASSERT(head_length((const char *)data, bytes - 1) == 0);
	text = malloc(bytes);
	memcpy(text, data, bytes);
	if (head_parse(text, bytes, &h) == 0) {
		check_word(h.method, text, bytes);
		check_word(h.path, text, bytes);
		ASSERT(*h.method && !strpbrk(h.path, " ?\t"));
		if (h.token)
			check_word(h.token, text, bytes);
		ASSERT(h.body_bytes <= HEAD_BODY_MAX);
		ASSERT(h.has_length || h.body_bytes == 0);
	}
	free(text);
	if (len_bytes > bytes)
		unchunk((const char *)data + bytes, len_bytes - bytes);
	return 0;
}
