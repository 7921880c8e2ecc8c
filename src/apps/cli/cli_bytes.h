/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values as people and programs read them. */
#ifndef AQ_CLI_BYTES_H
#define AQ_CLI_BYTES_H

#include "base/base.h"

/* Bytes that are no printable ASCII become \xHH; so do backslashes. */
void cli_bytes_print(const void *bytes, size_t len);
/* "name":"hexadecimal digits" */
void cli_bytes_print_json(const char *name, const void *bytes, size_t len);
/* One line: key, tab and value; or an object. value may be NULL. */
void cli_pair_print(bool as_json, const void *key, size_t key_len,
		    const void *value, size_t value_len);

#endif
