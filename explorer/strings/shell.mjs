// Text around the views.
export const shell = {
  tagline: {en: 'multi-head attention, step by step', zh: '看得见的多头注意力'},
  views: {en: 'Views', zh: '页面'},
  skip: {en: 'Skip to the content', zh: '跳到正文'},
  'tab.walk': {en: 'Walk', zh: '逐步演示'},
  'tab.questions': {en: 'Questions', zh: '问题'},
  'tab.data': {en: 'Your data', zh: '你的数据'},
  'tab.train': {en: 'Train', zh: '训练'},
  copyLink: {en: 'Copy link', zh: '复制链接'},
  linkCopied: {en: 'Link to this view copied.', zh: '已复制当前页面状态的链接。'},
  linkHere: {en: 'Link to this view:', zh: '当前页面状态的链接：'},
  dark: {en: 'Dark', zh: '深色'},
  light: {en: 'Light', zh: '浅色'},
  computing: {en: 'Computing …', zh: '正在计算……'},
  footer: {
    en: 'rapt computed every number on this page in your browser. No data leaves it.',
    zh: '本页的每个数字都由 rapt 在你的浏览器里实时算出，数据不会离开浏览器。',
  },
  shape: {en: 'shape', zh: '形状'},
  strides: {en: 'strides', zh: '步长'},
};
