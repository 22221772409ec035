//! Changes to an input that may flip a comparison.

use crate::comparisons::Operands;

/// Bytes for an input: 1, 2, 4 or 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// Zeros after `size` bytes.
    bytes: [u8; 8],
    size: u8,
}

impl Token {
    /// The low `size` bytes of a number, least significant byte first.
    pub(crate) const fn little(number: u64, size: usize) -> Token {
        let unused = 64 - 8 * size as u32;
        Token { bytes: (number << unused >> unused).to_le_bytes(), size: size as u8 }
    }

    /// The low `size` bytes of a number, most significant byte first.
    pub(crate) const fn big(number: u64, size: usize) -> Token {
        Token { bytes: (number << (64 - 8 * size as u32)).to_be_bytes(), size: size as u8 }
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.size)]
    }
}

/// A change to an input that may make both operands of a comparison equal.
/// [`Operands::replacements`] makes it. Both tokens have the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Replacement {
    /// The bytes to look for in the input.
    pub find: Token,
    /// The bytes to put in their place.
    pub replace: Token,
}

impl Operands {
    /// The changes to an input that may make the operands equal.
    ///
    /// If the first operand is a constant, the input can only hold the second. Otherwise it can
    /// hold either, so both directions are returned. Equal operands give no changes.
    ///
    /// Each change comes in both byte orders, least significant first. It comes in the size of the
    /// comparison and in each smaller size that holds both operands, because the kernel may have
    /// zero- or sign-extended them before the comparison. If the field in the input is larger than
    /// the comparison, it contains these bytes too.
    ///
    /// ```
    /// use kcov::Comparison;
    /// use kcov_signal::Operands;
    ///
    /// // The kernel compared a 4-byte constant, -2, with 7.
    /// let operands = Operands::new(Comparison::from_words([5, 0xffff_fffe, 7, 0]));
    /// let changes: Vec<(Vec<u8>, Vec<u8>)> = operands
    ///     .replacements()
    ///     .map(|change| (change.find.as_bytes().to_vec(), change.replace.as_bytes().to_vec()))
    ///     .collect();
    /// assert_eq!(changes[0], (vec![7, 0, 0, 0], vec![0xfe, 0xff, 0xff, 0xff]));
    /// assert_eq!(changes[1], (vec![0, 0, 0, 7], vec![0xff, 0xff, 0xff, 0xfe]));
    /// assert_eq!(changes[4], (vec![7], vec![0xfe]));
    /// ```
    pub fn replacements(self) -> impl Iterator<Item = Replacement> {
        let (first, second) = self.unsigned();
        let ways = [Some((second, first)), (!self.is_const()).then_some((first, second))];
        let sizes = [8, 4, 2, 1].into_iter();
        let sizes = sizes.filter(move |&size| self.fit(size) && first != second);
        ways.into_iter().flatten().flat_map(move |(find, replace)| {
            sizes.clone().flat_map(move |size| {
                let with = |token: fn(u64, usize) -> Token| Replacement {
                    find: token(find, size),
                    replace: token(replace, size),
                };
                let (little, big) = (with(Token::little), with(Token::big));
                [Some(little), (big != little).then_some(big)].into_iter().flatten()
            })
        })
    }

    /// Whether both operands fit in `size` bytes with the same kind of extension.
    fn fit(self, size: usize) -> bool {
        if size >= self.size() {
            return size == self.size();
        }
        let unused = 64 - 8 * size as u32;
        let (first, second) = self.unsigned();
        let zeros = |number: u64| number << unused >> unused == number;
        let (low, high) = self.signed();
        let sign = |number: i64| number << unused >> unused == number;
        zeros(first) && zeros(second) || sign(low) && sign(high)
    }
}
