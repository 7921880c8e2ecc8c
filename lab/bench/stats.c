/* SPDX-License-Identifier: Apache-2.0 */
/* Order statistics by selection, so that a million samples need no sort. */
#include "stats.h"

#include <stdlib.h>

static void swap_u32(uint32_t *a, uint32_t *b)
{
	uint32_t t = *a;

	*a = *b;
	*b = t;
}

/* Hoare's selection; the middle element as pivot keeps sorted input fast. */
static uint32_t select_u32(uint32_t *v, size_t count, size_t k)
{
	size_t lo = 0;
	size_t hi = count - 1;

	while (lo < hi) {
		uint32_t pivot = v[lo + (hi - lo) / 2];
		size_t i = lo;
		size_t j = hi;

		while (1) {
			while (v[i] < pivot)
				i++;
			while (v[j] > pivot)
				j--;
			if (i >= j)
				break;
			swap_u32(&v[i++], &v[j--]);
		}
		if (k <= j)
			hi = j;
		else
			lo = j + 1;
	}
	return v[k];
}

uint32_t stats_quantile_u32(uint32_t *v, size_t count, double fraction)
{
	size_t k;

	if (count == 0)
		return 0;
	k = (size_t)((double)(count - 1) * fraction + 0.5);
	return select_u32(v, count, k < count ? k : count - 1);
}

double stats_center_u32(uint32_t *v, size_t count, double reach)
{
	double middle = stats_quantile_u32(v, count, 0.5);
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		if ((double)v[i] < middle - reach ||
		    (double)v[i] > middle + reach)
			continue;
		sum += v[i];
		n++;
	}
	return n ? sum / (double)n : 0;
}

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

double stats_median(double *v, size_t count)
{
	if (count == 0)
		return 0;
	qsort(v, count, sizeof(*v), compare_double);
	if (count % 2)
		return v[count / 2];
	return (v[count / 2 - 1] + v[count / 2]) / 2;
}
