/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in text, as strictly as Redis reads them. */
#ifndef AQ_REDIS_NUMBER_H
#define AQ_REDIS_NUMBER_H

#include "base/base.h"

enum {
	NUMBER_TEXT_MAX = 24,	      /* an int64_t, with the NUL */
	NUMBER_FLOAT_TEXT_MAX = 5120, /* a long double in full */
};

/* Exactly what printing an int64_t gives: no blank, no '+', no leading zero. */
bool number_parse(const char *text, size_t len, int64_t *out);
/* The length; `out` has NUMBER_TEXT_MAX bytes. */
size_t number_format(int64_t n, char *out);

/* A number, or an infinity by name, that fills the whole text. */
bool number_parse_float(const char *text, size_t len, long double *out);
/* As short as it can be without an exponent; the length. */
size_t number_format_float(long double v, char out[NUMBER_FLOAT_TEXT_MAX]);

#endif
