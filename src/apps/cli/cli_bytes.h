/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values as people and programs read them. */
#ifndef AQ_CLI_BYTES_H
#define AQ_CLI_BYTES_H

#include "base/base.h"

/* One line: key, tab and value; or an object, also with the time at which the
 * key ends. value may be NULL, the time 0. */
void cli_pair_print(bool as_json, const void *key, size_t key_len,
		    const void *value, size_t value_len, uint64_t expire_at_ms);
/* What `get` prints: the bytes of the value alone, or the object. */
void cli_value_print(bool as_json, const void *key, size_t key_len,
		     const void *value, size_t value_len);
/* What was done with a key, "stored" or "deleted"; nothing for people. */
void cli_key_done(bool as_json, const char *what, const void *key,
		  size_t key_len);

#endif
